#!/usr/bin/env bash
# A Docker Engine of our own for tests: own data, own socket, own bridge. A developer's engine is never touched.
#
#   tests/engines/docker.sh start    installs what is missing, starts the engine, prints its address
#   tests/engines/docker.sh stop     stops it by its process id
#
# Root only. State lives in ${RELAY_ENGINES:-~/.cache/relay-engines}/docker; a start after a crash cleans up first.
set -euo pipefail

root="${RELAY_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/relay-engines}/docker"
run="$root/run"
pid_file="$run/docker.pid"
socket="$run/docker.sock"
# A second engine beside the first has another folder (RELAY_ENGINES), bridge and subnet, and leaves the firewall alone.
bridge="${RELAY_ENGINE_BRIDGE:-relaytest0}"
subnet="${RELAY_ENGINE_SUBNET:-172.31.250.1/24}"
deadline_seconds=60

alive() {
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 1
    [ -d "/proc/$pid" ] && tr '\0' ' ' < "/proc/$pid/cmdline" | grep -q "$2"
}

answers() {
    curl --silent --max-time 2 --unix-socket "$socket" http://localhost/_ping >/dev/null 2>&1
}

install_engine() {
    local missing=""
    for program in dockerd docker curl iptables ip; do
        command -v "$program" >/dev/null || missing="$missing $program"
    done
    [ -z "$missing" ] && return
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "docker.sh: missing:$missing; on Debian, as root: apt-get install docker.io curl iptables iproute2" >&2
        exit 1
    fi
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq docker.io curl iptables iproute2 >&2
}

clean() {
    rm -f "$pid_file" "$socket" "$run/exec/containerd/containerd.pid" "$run/exec/containerd/"*.sock
    # What a killed engine left mounted below our own folder.
    awk -v below="$root/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do
        umount -l "$mount" 2>/dev/null || true
    done
}

start() {
    install_engine
    if alive "$pid_file" dockerd && answers; then
        echo "unix://$socket"
        return
    fi
    stop
    clean
    mkdir -p "$run"
    # An empty configuration of its own, so that the machine's /etc/docker/daemon.json is not read.
    echo '{}' > "$root/daemon.json"
    ip link show "$bridge" >/dev/null 2>&1 || {
        ip link add "$bridge" type bridge
        ip addr add "$subnet" dev "$bridge"
        ip link set "$bridge" up
    }
    setsid dockerd --data-root "$root/data" --exec-root "$run/exec" --pidfile "$pid_file" \
        --host "unix://$socket" --bridge "$bridge" --config-file "$root/daemon.json" --max-download-attempts 2 \
        ${RELAY_ENGINE_FLAGS:-} \
        >"$root/docker.log" 2>&1 </dev/null &
    local waited=0
    until answers; do
        sleep 0.2
        waited=$((waited + 1))
        if [ "$waited" -gt $((deadline_seconds * 5)) ]; then
            echo "docker.sh: the engine did not answer within $deadline_seconds s; its log ends with" >&2
            tail -5 "$root/docker.log" >&2
            exit 1
        fi
    done
    echo "unix://$socket"
}

stop() {
    if alive "$pid_file" dockerd; then
        local pid waited=0
        pid=$(cat "$pid_file")
        kill "$pid"
        while [ -d "/proc/$pid" ] && [ "$waited" -lt 100 ]; do
            sleep 0.2
            waited=$((waited + 1))
        done
        [ -d "/proc/$pid" ] && kill -9 "$pid"
    fi
    ip link show "$bridge" >/dev/null 2>&1 && ip link del "$bridge" || true
}

case "${1:-}" in
    start) start ;;
    stop) stop ;;
    *) sed -n '2,8p' "$0" | cut -c3- >&2; exit 2 ;;
esac
