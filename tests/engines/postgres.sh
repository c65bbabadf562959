#!/usr/bin/env bash
# A PostgreSQL of our own for tests: own data folder, own loopback port. A developer's server is never touched.
#
#   tests/engines/postgres.sh start [name]   installs what is missing, starts the server, prints its address
#   tests/engines/postgres.sh stop [name]    stops it by its process id
#   tests/engines/postgres.sh kill [name]    kills it as a power cut would; `start` brings it back on the same port
#   tests/engines/postgres.sh freeze|thaw [name]   all its processes stand still, or go on
#
# State lives in ${RELAY_ENGINES:-~/.cache/relay-engines}/postgres-<name> (name: main), or, started by root, below
# /var/lib/postgresql, as the server refuses to run as root and must reach its files. A stopped server's data is removed.
set -euo pipefail

name="${2:-main}"
deadline_seconds=60

if [ "$(id -u)" -eq 0 ]; then
    root="${RELAY_ENGINES:-/var/lib/postgresql/relay-engines}/postgres-$name"
else
    root="${RELAY_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/relay-engines}/postgres-$name"
fi
data="$root/data"

# Runs a program of the server as somebody who is not root.
as_server() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

program() {
    local found
    found=$(command -v "$1" || ls -d /usr/lib/postgresql/*/bin/"$1" 2>/dev/null | sort -V | tail -1)
    [ -n "$found" ] && echo "$found"
}

install_server() {
    program postgres >/dev/null && program initdb >/dev/null && return
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "postgres.sh: no PostgreSQL here; on Debian, as root: apt-get install postgresql" >&2
        exit 1
    fi
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >&2
}

# The process id of our server, if it lives.
alive() {
    local pid
    pid=$(head -1 "$data/postmaster.pid" 2>/dev/null) || return 1
    [ -n "$pid" ] && [ -d "/proc/$pid" ] && tr '\0' ' ' < "/proc/$pid/cmdline" | grep -q "postgres" && echo "$pid"
}

free_port() {
    local port
    for port in $(shuf -i 20000-30000 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    echo "postgres.sh: no free port" >&2
    exit 1
}

answers() {
    "$(program pg_isready)" --quiet --host 127.0.0.1 --port "$1" --timeout 2
}

wait_gone() {
    local waited=0
    while [ -d "/proc/$1" ] && [ "$waited" -lt 150 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    ! [ -d "/proc/$1" ]
}

start() {
    install_server
    mkdir -p "$root"
    [ "$(id -u)" -eq 0 ] && chown postgres "$root"
    if ! [ -f "$data/PG_VERSION" ]; then
        as_server "$(program initdb)" --pgdata "$data" --username relay --auth trust --encoding UTF8 --locale C.UTF-8 \
            >"$root/initdb.log" 2>&1 || { tail -5 "$root/initdb.log" >&2; exit 1; }
        free_port > "$root/port"
    fi
    local port
    port=$(cat "$root/port")
    if ! alive >/dev/null; then
        as_server setsid "$(program postgres)" -D "$data" -c listen_addresses=127.0.0.1 -c port="$port" \
            -c unix_socket_directories= -c max_connections=300 -c log_min_messages=fatal \
            >"$root/postgres.log" 2>&1 </dev/null &
    fi
    local waited=0
    until answers "$port"; do
        sleep 0.1
        waited=$((waited + 1))
        if [ "$waited" -gt $((deadline_seconds * 10)) ]; then
            echo "postgres.sh: the server did not answer within $deadline_seconds s; its log ends with" >&2
            tail -5 "$root/postgres.log" >&2
            exit 1
        fi
    done
    echo "postgres://relay@127.0.0.1:$port/postgres"
}

stop() {
    local pid
    if pid=$(alive); then
        signal_all -CONT
        kill -INT "$pid"
        wait_gone "$pid" || kill -9 "$pid"
    fi
    rm -rf "$root"
}

# Sends a signal to the server and all that it started.
signal_all() {
    local pid
    pid=$(alive) || return 0
    kill "$1" "$pid" $(cat /proc/"$pid"/task/*/children) 2>/dev/null || true
}

cut() {
    local pid
    pid=$(alive) || return 0
    signal_all -KILL
    wait_gone "$pid"
    rm -f "$data/postmaster.pid"
}

case "${1:-}" in
    start) start ;;
    stop) stop ;;
    kill) cut ;;
    freeze) signal_all -STOP ;;
    thaw) signal_all -CONT ;;
    *) sed -n '2,10p' "$0" | cut -c3- >&2; exit 2 ;;
esac
