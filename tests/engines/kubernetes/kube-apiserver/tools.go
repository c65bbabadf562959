//go:build tools

// Package tools names the program this module exists to build, so that go.mod keeps its dependencies.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
