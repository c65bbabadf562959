#!/usr/bin/env bash
# A Kubernetes API of our own for tests: etcd, kube-apiserver and kubectl, built from their Go modules, each server with its
# own data, certificates, tokens and free ports of loopback. A developer's cluster and kubeconfig are never touched.
#
#   tests/engines/kubernetes.sh build                builds what is not in the cache, prints the folder of the programs
#   tests/engines/kubernetes.sh start DIR [OWNER]    starts what does not run in DIR, prints the path of a kubeconfig
#   tests/engines/kubernetes.sh stop DIR             stops it by process id, waits for its end and removes DIR
#   tests/engines/kubernetes.sh kill DIR api|etcd    kills one of them, as the kernel would; `start` brings it back as it was
#   tests/engines/kubernetes.sh freeze|thaw DIR api|etcd   one of them stands still, or goes on
#
# With OWNER, a process id, the servers belong to that process: a later `start` of anybody stops what a dead owner left.
# Programs live in ${RELAY_ENGINES:-~/.cache/relay-engines}/<hash of what they are built from>. Contexts of the kubeconfig:
# admin (may everything), alice, bob, carol (nothing until a test binds them), controller. KUBECTL is bin/kubectl there.
# Exit code 3: there is no Go toolchain and nothing was built before. With CI=true that is a failure, 1.
set -euo pipefail

version=v1.35.4
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/kubernetes"
cache="${RELAY_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/relay-engines}"
runs="$cache/kubernetes-runs"
programs=(etcd kube-apiserver kubectl)
ready_seconds=60
stop_seconds=30

say() { echo "kubernetes.sh: $*" >&2; }

fail() { say "$*"; exit 1; }

# --- programs -------------------------------------------------------------------------------------------------------------

package() {
    case "$1" in
        etcd) echo go.etcd.io/etcd/server/v3 ;;
        *) echo "k8s.io/kubernetes/cmd/$1" ;;
    esac
}

ldflags() {
    local stamp=k8s.io/component-base/version
    case "$1" in
        etcd) echo "-s -w" ;;
        *) echo "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=35 -X $stamp.gitTreeState=clean" ;;
    esac
}

# Folder of a program: the hash of all that it is built from. The compiler is not part of it, so that a machine which has
# the programs needs no Go, and an update of Go rebuilds nothing.
folder() {
    local hash
    hash=$( (cat "$here/$1"/{go.mod,go.sum,tools.go}; package "$1"; ldflags "$1"; uname -sm) | sha256sum | cut -c1-16)
    echo "$cache/$hash"
}

bin() { echo "$(folder "$1")/$1"; }

# All programs in one folder, as links: what `build` prints.
bin_folder() {
    local all
    all=$(for program in "${programs[@]}"; do folder "$program"; done | sha256sum | cut -c1-16)
    echo "$cache/kubernetes-$all"
}

missing_programs() {
    local program
    for program in "${programs[@]}"; do
        [ -x "$(bin "$program")" ] || echo "$program"
    done
}

build_program() {
    local program=$1 to part began=$SECONDS
    to=$(folder "$program")
    part="$to.part"
    rm -rf "$part"
    mkdir -p "$part"
    say "building $program (once for this machine; minutes for kube-apiserver)"
    (cd "$here/$program" && GOFLAGS="-mod=readonly -buildvcs=false" GOWORK=off CGO_ENABLED=0 \
        nice -n 10 go build -trimpath -ldflags "$(ldflags "$program")" -o "$part/$program" "$(package "$program")") >&2 ||
        fail "cannot build $program: its module is $here/$program"
    rm -rf "$to"
    mv "$part" "$to"
    say "built $program in $((SECONDS - began)) s"
}

build() {
    local program to
    mkdir -p "$cache"
    if [ -n "$(missing_programs)" ]; then
        if ! command -v go >/dev/null; then
            say "NO GO TOOLCHAIN: etcd, kube-apiserver and kubectl $version cannot be built; install Go 1.26 (https://go.dev/dl)"
            [ "${CI:-}" = true ] && exit 1
            exit 3
        fi
        # One at a time: who waited finds them built.
        exec 9>"$cache/kubernetes.lock"
        flock 9
        for program in $(missing_programs); do
            build_program "$program"
        done
        flock -u 9
        exec 9>&-
    fi
    to=$(bin_folder)
    mkdir -p "$to"
    for program in "${programs[@]}"; do
        ln -sfn "$(bin "$program")" "$to/$program"
    done
    echo "$to"
}

# --- one server -----------------------------------------------------------------------------------------------------------

# The process id that DIR/NAME.pid names, if that process is the one we started: its command line names the folder.
alive() {
    local pid
    pid=$(cat "$dir/$1.pid" 2>/dev/null) || return 1
    [ -n "$pid" ] && tr '\0' '\n' < "/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "$dir/" && echo "$pid"
}

gone() {
    # A zombie has ended; who started it has not looked yet.
    ! [ -d "/proc/$1" ] || grep -qs '^State:.Z' "/proc/$1/status"
}

wait_gone() {
    local waited=0
    until gone "$1"; do
        sleep 0.1
        waited=$((waited + 1))
        [ "$waited" -le $(("$2" * 10)) ] || return 1
    done
}

end() {
    local pid
    if pid=$(alive "$1"); then
        kill -CONT "$pid" 2>/dev/null || true
        kill "$pid" 2>/dev/null || true
        wait_gone "$pid" "$stop_seconds" || { kill -9 "$pid" 2>/dev/null || true; wait_gone "$pid" 10 || true; }
    fi
    rm -f "$dir/$1.pid"
}

free_port() {
    local port
    for port in $(shuf -i 20000-30000 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    fail "no free port"
}

random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

# Ports, keys and tokens, once for a folder.
prepare() {
    [ -f "$dir/ports" ] && return
    command -v openssl >/dev/null || fail "no openssl here; on Debian, as root: apt-get install openssl"
    mkdir -p "$dir/pki"
    chmod 700 "$dir"
    openssl genrsa -out "$dir/pki/service-accounts.key" 2048 2>/dev/null
    # Not a certificate of an authority: what is both is refused by rustls.
    cat > "$dir/pki/server.cnf" <<'END'
[req]
prompt = no
distinguished_name = subject
x509_extensions = extensions
[subject]
CN = relay-tests
[extensions]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
END
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -config "$dir/pki/server.cnf" \
        -keyout "$dir/pki/server.key" -out "$dir/pki/server.crt" 2>/dev/null
    local user group
    for user in admin alice bob carol controller; do
        group=testers
        [ "$user" = admin ] && group=system:masters
        echo "$(random 16),$user,$user,\"$group\""
    done > "$dir/tokens.csv"
    choose_ports
}

choose_ports() {
    echo "etcd_port=$(free_port) peer_port=$(free_port) api_port=$(free_port)" > "$dir/ports.part"
    mv "$dir/ports.part" "$dir/ports"
    write_kubeconfig
}

write_kubeconfig() {
    local etcd_port peer_port api_port certificate token user _
    . "$dir/ports"
    certificate=$(base64 -w0 "$dir/pki/server.crt")
    {
        printf 'apiVersion: v1\nkind: Config\ncurrent-context: admin\nclusters:\n- name: tests\n  cluster:\n'
        printf '    server: https://127.0.0.1:%s\n    certificate-authority-data: %s\nusers:\n' "$api_port" "$certificate"
        while IFS=, read -r token user _; do
            printf -- '- name: %s\n  user: {token: %s}\n' "$user" "$token"
        done < "$dir/tokens.csv"
        printf 'contexts:\n'
        while IFS=, read -r token user _; do
            printf -- '- name: %s\n  context: {cluster: tests, user: %s}\n' "$user" "$user"
        done < "$dir/tokens.csv"
    } > "$dir/kubeconfig.part"
    chmod 600 "$dir/kubeconfig.part"
    mv "$dir/kubeconfig.part" "$dir/kubeconfig"
}

run_etcd() {
    local etcd_port peer_port api_port
    . "$dir/ports"
    setsid "$(bin etcd)" --name tests --data-dir "$dir/etcd" --unsafe-no-fsync --log-level warn \
        --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
        --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
        --initial-cluster "tests=http://127.0.0.1:$peer_port" \
        >>"$dir/etcd.log" 2>&1 </dev/null 9>&- &
    echo $! > "$dir/etcd.pid"
}

run_api() {
    local etcd_port peer_port api_port
    . "$dir/ports"
    setsid "$(bin kube-apiserver)" --etcd-servers "http://127.0.0.1:$etcd_port" \
        --bind-address 127.0.0.1 --secure-port "$api_port" --endpoint-reconciler-type none \
        --tls-cert-file "$dir/pki/server.crt" --tls-private-key-file "$dir/pki/server.key" --cert-dir "$dir/pki" \
        --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range 10.96.0.0/16 \
        --service-account-key-file "$dir/pki/service-accounts.key" \
        --service-account-signing-key-file "$dir/pki/service-accounts.key" \
        --token-auth-file "$dir/tokens.csv" --authorization-mode RBAC,Node --allow-privileged=true \
        --kubelet-preferred-address-types InternalIP --profiling=false \
        --shutdown-delay-duration 0s --shutdown-send-retry-after=false \
        >>"$dir/kube-apiserver.log" 2>&1 </dev/null 9>&- &
    echo $! > "$dir/kube-apiserver.pid"
}

kubectl_admin() {
    "$(bin kubectl)" --kubeconfig "$dir/kubeconfig" --cache-dir "$dir/cache" --request-timeout 5s "$@"
}

answers() {
    kubectl_admin get --raw /readyz >/dev/null 2>&1 && kubectl_admin get namespace default >/dev/null 2>&1
}

# Starts what does not run and waits until both answer; 1 when one of them ended meanwhile.
bring_up() {
    local waited=0
    alive etcd >/dev/null || run_etcd
    alive kube-apiserver >/dev/null || run_api
    until answers; do
        alive etcd >/dev/null && alive kube-apiserver >/dev/null || return 1
        sleep 0.1
        waited=$((waited + 1))
        [ "$waited" -le $((ready_seconds * 10)) ] || return 1
    done
    # What answered must be ours: another server may have taken the port.
    alive etcd >/dev/null && alive kube-apiserver >/dev/null
}

# Stops what belongs to owners that have ended.
sweep() {
    local entry path owner began
    for entry in "$runs"/*; do
        [ -f "$entry" ] || continue
        { read -r path; read -r owner began; } < "$entry" || continue
        [ "$path" = "$dir" ] && continue
        if [ "$(started "$owner")" != "$began" ]; then
            say "stopping what process $owner left in $path"
            (dir=$path; end kube-apiserver; end etcd; [ -f "$dir/ports" ] && rm -rf "$dir") || true
            rm -f "$entry"
        fi
    done
}

# When a process began, in ticks since the machine did; empty when there is none. A process id alone may be used again.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20 || true; }

entry() { echo "$runs/$(echo "$dir" | sha256sum | cut -c1-16)"; }

start() {
    local owner=${1:-} attempt
    build >/dev/null
    mkdir -p "$runs"
    exec 8>"$runs/.lock"
    flock 8
    sweep
    if [ -n "$owner" ]; then
        printf '%s\n%s %s\n' "$dir" "$owner" "$(started "$owner")" > "$(entry)"
    fi
    exec 8>&-
    mkdir -p "$dir"
    exec 9>"$dir/lock"
    flock 9
    prepare
    for attempt in 1 2 3 4 5; do
        if bring_up; then
            flock -u 9
            echo "$dir/kubeconfig"
            return
        fi
        say "attempt $attempt did not come up"
        end kube-apiserver
        # A port that somebody took meanwhile is worth another choice, for a folder that never ran.
        if grep -qs "address already in use" "$dir/etcd.log" "$dir/kube-apiserver.log"; then
            end etcd
            rm -rf "$dir/etcd" "$dir"/*.log
            choose_ports
        fi
    done
    tail -5 "$dir/etcd.log" "$dir/kube-apiserver.log" >&2
    fail "no Kubernetes API in $dir"
}

stop() {
    end kube-apiserver
    end etcd
    # Only what is one of our folders is removed.
    if [ -f "$dir/ports" ]; then rm -rf "$dir"; fi
    rm -f "$(entry)"
}

signal() {
    local name pid
    case "${2:-}" in
        api) name=kube-apiserver ;;
        etcd) name=etcd ;;
        *) fail "which: api or etcd?" ;;
    esac
    pid=$(alive "$name") || return 0
    kill "$1" "$pid"
    [ "$1" = -KILL ] || return 0
    wait_gone "$pid" 10 && rm -f "$dir/$name.pid"
}

usage() { sed -n '2,16p' "$0" | cut -c3- >&2; exit 2; }

if [ "${1:-}" != build ]; then
    [ -n "${2:-}" ] || usage
    # As it is, even when it does not exist yet.
    dir=$(realpath -m -- "$2")
fi
case "${1:-}" in
    build) build ;;
    start) start "${3:-}" ;;
    stop) stop ;;
    kill) signal -KILL "${3:-}" ;;
    freeze) signal -STOP "${3:-}" ;;
    thaw) signal -CONT "${3:-}" ;;
    *) usage ;;
esac
