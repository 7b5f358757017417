#!/bin/bash
# ZooKeeper's zkServer.sh, with its words, files and lines: for scripts that call it. What it starts is `quenda serve`.
#
#   zkServer.sh [--config DIR] start [FILE [FLAG…]]                in the background: STARTED if it runs after a second
#   zkServer.sh [--config DIR] start-foreground [FILE [FLAG…]]     FLAGs are those of `quenda serve`
#   zkServer.sh [--config DIR] stop|restart [FILE [FLAG…]]         ends what start has started, and waits for its end
#   zkServer.sh [--config DIR] status [FILE]                       0 and its mode if the member serves, or leads, else 1
#   zkServer.sh [--config DIR] print-cmd [FILE [FLAG…]]            what start would run
#   zkServer.sh version
#
# A FILE that is no path lies in the configuration directory; the default is zoo.cfg. That directory is DIR, else $ZOOCFGDIR,
# $ZOO_CONF_DIR, conf beside this script's directory, or /etc/quenda. zookeeper-env.sh and java.env in it are sourced.
# The process id is in $ZOOPIDFILE, else in zookeeper_server.pid in dataDir; what a server in the background writes, in
# $ZOO_LOG_DIR, else in logs beside conf, or /var/log/quenda, or dataDir. Of $SERVER_JVMFLAGS and $JVMFLAGS the -Dname=value count.
set -uo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
program="$here/quenda"
[ -x "$program" ] || program="$(command -v quenda || echo quenda)"
# How long the end of a server is waited for, in tenths of a second: a leader hands over first.
stop_patience=600

default_directory() {
    if [ -n "${ZOO_CONF_DIR:-}" ]; then
        echo "$ZOO_CONF_DIR"
    elif [ -d "$here/../conf" ]; then
        echo "$here/../conf"
    else
        echo /etc/quenda
    fi
}

directory="${ZOOCFGDIR:-$(default_directory)}"
if [ "${1:-}" = --config ]; then
    directory="${2:?--config needs a directory}"
    shift 2
fi

usage() {
    echo "Usage: $0 [--config <conf-dir>] {start|start-foreground|stop|version|restart|status|print-cmd}" >&2
    exit 1
}

# source_settings: what the operator has written for all of ZooKeeper's scripts.
source_settings() {
    local settings
    for settings in zookeeper-env.sh java.env; do
        # shellcheck disable=SC1090 # the operator's
        [ ! -f "$directory/$settings" ] || . "$directory/$settings"
    done
    [ -z "${JVMFLAGS+set}" ] || export JVMFLAGS
    [ -z "${SERVER_JVMFLAGS+set}" ] || export SERVER_JVMFLAGS
    [ -z "${JMXPORT:-}" ] || echo "JMXPORT has no effect: there is no JMX, see metrics" >&2
}

configuration_file() {
    local file="${1:-${ZOOCFG:-zoo.cfg}}"
    case "$file" in
        */*) ;;
        *) file="$directory/$file" ;;
    esac
    # Where a read-only root made the entrypoint of a container put it.
    if [ ! -e "$file" ] && [ -z "${1:-}" ] && [ -n "${ZOO_DATA_DIR:-}" ] && [ -e "$ZOO_DATA_DIR/zoo.cfg" ]; then
        file="$ZOO_DATA_DIR/zoo.cfg"
    fi
    echo "$file"
}

# value KEY FILE: the last value of a key, without blanks around it. A line that ends in a backslash goes on in the next.
value() {
    local key="${1//./\\.}"
    sed -e '/^[[:blank:]]*[#!]/d' -e ':join' -e '/\\$/{N;s/\\\n[[:blank:]]*//;b join' -e '}' "$2" 2>/dev/null |
        sed -n "s/^[[:blank:]]*${key}[[:blank:]]*[=:[:blank:]][[:blank:]]*//p" |
        tail -n 1 | sed 's/[[:space:]]*$//'
}

# client_part ID FILE: what follows the semicolon in the line server.ID, [host:]port.
client_part() {
    local line
    line="$(value "server.$1" "$2")"
    case "$line" in
        *\;*)
            line="${line#*;}"
            echo "${line%%;*}"
            ;;
    esac
}

# Sets host and port to where clients are served, and ssl to whether by TLS alone: by the keys or by this member's server line.
find_client_address() {
    local file="$1" id='' part
    ssl=false
    port="$(value clientPort "$file")"
    host="$(value clientPortAddress "$file")"
    if [ -z "$port" ]; then
        read -r id 2>/dev/null <"$(value dataDir "$file")/myid"
        if [ -n "$id" ]; then
            part="$(client_part "$id" "$file")"
            if [ -z "$part" ]; then
                echo "Client port not found in static config file. Looking in dynamic config file."
                part="$(client_part "$id" "$(value dynamicConfigFile "$file")")"
            fi
            port="${part##*:}"
            [ "$port" = "$part" ] || host="${part%:*}"
        fi
    fi
    if [ -z "$port" ]; then
        port="$(value secureClientPort "$file")"
        host="$(value secureClientPortAddress "$file")"
        ssl=true
        if [ -z "$port" ] && [ -z "$id" ]; then
            echo "myid could not be determined, will not able to locate clientPort in the server configs."
            return 1
        fi
        echo "Client port not found. Looking for secureClientPort in the static config."
    fi
    if [ -z "$port" ]; then
        echo "Unable to find either secure or unsecure client port in any configs. Terminating."
        return 1
    fi
    host="${host#[}"
    host="${host%]}"
    case "$host" in "" | 0.0.0.0 | :: | \*) host=localhost ;; esac
}

# The answer to a word on the port without TLS.
word() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "$2" >&3 && cat <&3' "$host" "$port" "$1" 2>/dev/null
}

# What the port without TLS says of the mode. A leader that leaves clients to the others (leaderServes=no) does not answer
# srvr, and is well.
plain_mode() {
    word srvr | grep '^Mode: ' && return
    case "$(word qsta)" in *'"service":"leads-only"'*) echo "Mode: leader" ;; esac
}

# The options by which a client here speaks TLS: those of CLIENT_JVMFLAGS, else the server's own certificate is shown to it.
# Whose certificate the server on this machine shows is not looked at then.
set_tls_options() {
    local file="$1" word store password
    if [ -n "${CLIENT_JVMFLAGS:-}" ]; then
        for word in $CLIENT_JVMFLAGS; do
            case "$word" in -D*) printf '%s\n' "${word#-D}" >>"$scratch/client" ;; esac
        done
        tls=(--tls --client-configuration "$scratch/client")
        return
    fi
    tls=(--tls --insecure)
    store="$(value ssl.keyStore.location "$file")"
    [ -z "$store" ] || tls+=(--cert "$store")
    password="$(value ssl.keyStore.passwordPath "$file")"
    if [ -z "$password" ] && [ -n "$(value ssl.keyStore.password "$file")" ]; then
        password="$scratch/password"
        value ssl.keyStore.password "$file" >"$password"
    fi
    [ -z "$password" ] || tls+=(--key-password-file "$password")
}

# The same of the port with TLS.
secure_mode() {
    local tls scratch
    scratch="$(mktemp -d)" || return
    chmod 700 "$scratch"
    set_tls_options "$1"
    timeout 6 "$program" status --servers "$host:$port" --json "${tls[@]}" 2>/dev/null |
        awk -v address="\"address\": \"$host:$port\"" '
            index($0, address) { here = 1 }
            here && /"role":/ { split($0, part, "\""); role = part[4] }
            here && /"service":/ {
                split($0, part, "\"")
                if (part[4] == "serving" || part[4] == "leads-only") print "Mode: " role
                if (part[4] == "read-only") print "Mode: read-only"
                exit
            }'
    rm -rf "$scratch"
}

status() {
    local host port ssl mode
    find_client_address "$1" || return 1
    echo "Client port found: $port. Client address: $host. Client SSL: $ssl."
    case "$ssl" in
        true) mode="$(secure_mode "$1")" ;;
        *) mode="$(plain_mode)" ;;
    esac
    if [ -z "$mode" ]; then
        echo "Error contacting service. It is probably not running."
        return 1
    fi
    echo "$mode"
}

default_log_directory() {
    if [ -d "$here/../conf" ]; then
        echo "$here/../logs"
    elif [ "$directory" = /etc/quenda ]; then
        echo /var/log/quenda
    else
        echo "$data"
    fi
}

# Sets what start, stop and print-cmd need: file, data, pid_file, log_directory, out, command.
prepare() {
    source_settings
    file="$(configuration_file "${1:-}")"
    echo "Using config: $file" >&2
    data="$(value dataDir "$file")"
    pid_file="${ZOOPIDFILE:-$data/zookeeper_server.pid}"
    log_directory="${ZOO_LOG_DIR:-$(default_log_directory)}"
    out="$log_directory/zookeeper-${USER:-$(id -un)}-server-${HOSTNAME:-$(uname -n)}.out"
    command=("$program" serve --config "$file")
    [ -z "${ZOO_DATADIR_AUTOCREATE_DISABLE:-}" ] || command+=(-Ddatadir.autocreate=false)
    command+=("${@:2}")
}

demand_data() {
    local log
    [ -n "${ZOO_DATADIR_AUTOCREATE_DISABLE:-}" ] || return 0
    if [ ! -d "$data" ]; then
        echo "ZooKeeper data directory is missing at $data fix the path or run initialize"
        exit 1
    fi
    log="$(value dataLogDir "$file")"
    if [ -n "$log" ] && [ ! -d "$log" ]; then
        echo "ZooKeeper txnlog directory is missing at $log fix the path or run initialize"
        exit 1
    fi
}

# Who is root starts the server as the owner of its data: what root writes there, no other user could read later.
become_owner() {
    local owner group
    [ "$(id -u)" -eq 0 ] && [ -d "$data" ] || return 0
    owner="$(stat --format %u "$data")" group="$(stat --format %g "$data")"
    [ "$owner" -ne 0 ] || return 0
    echo "Starting as the user $(stat --format %U "$data"), who owns $data" >&2
    # Where it writes its audit log.
    [ -z "$new_logs" ] || chown "$owner:$group" "$log_directory"
    command=(setpriv --reuid="$owner" --regid="$group" --clear-groups "${command[@]}")
}

# Makes the directory for logs, and names it to the server. new_logs is not empty if it was not there.
make_log_directory() {
    new_logs=
    if [ ! -d "$log_directory" ]; then
        mkdir -p "$log_directory" 2>/dev/null || return 1
        new_logs=yes
    fi
    export ZOO_LOG_DIR="$log_directory"
}

# Whether a process runs, and is a server: after a restart of the machine its id may be another's.
runs() {
    local name words
    [[ "$1" =~ ^[1-9][0-9]*$ ]] || return 1
    # Another user's process gets no signals, and is there.
    kill -0 "$1" 2>/dev/null || [ -d "/proc/$1" ] || return 1
    # What has ended, and whose parent does not look, stays in the list for ever.
    ! grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status" 2>/dev/null || return 1
    name="$(cat "/proc/$1/comm" 2>/dev/null)" || return 0
    # As long as it becomes what it is to be.
    case "$name" in "$(basename "$program" | cut -c1-15)" | nohup | setpriv) ;; *) return 1 ;; esac
    # A shell or a backup is no server. One on its way out has no words any more.
    words="$(tr '\0' '\n' 2>/dev/null <"/proc/$1/cmdline")"
    [ -z "$words" ] || grep -qx serve <<<"$words"
}

# One start at a time: the PID file of the one that lives must not be the other's to write or to take away.
lock_start() {
    [ -n "$data" ] || return 0
    mkdir -p "$data" && exec 9<"$data" || return 0
    # Where a file system has no such locks it goes without.
    flock --nonblock --conflict-exit-code 99 9 2>/dev/null
    [ $? -eq 99 ] || return 0
    echo "another start is under way."
    exit 1
}

# Why the server did not start. Where there was no place for its words, what is wrong with its file.
why() {
    if [ "$out" = /dev/null ]; then
        "$program" check-config "$file" 2>&1 | tail -n 3
    else
        tail -n 3 "$out" && echo "All it said is in $out"
    fi
}

start() {
    local pid
    prepare "$@"
    demand_data
    echo -n "Starting zookeeper ... "
    lock_start
    if [ -f "$pid_file" ] && pid="$(cat "$pid_file")" && runs "$pid"; then
        echo "already running as process $pid."
        exit 1
    fi
    [ -z "$data" ] || mkdir -p "$(dirname "$pid_file")"
    make_log_directory || out=/dev/null
    become_owner
    nohup "${command[@]}" >"$out" 2>&1 </dev/null 9<&- &
    pid=$!
    if ! echo -n "$pid" >"$pid_file"; then
        kill "$pid"
        echo "FAILED TO WRITE PID"
        exit 1
    fi
    sleep 1
    if ! kill -0 "$pid" 2>/dev/null; then
        rm -f "$pid_file"
        echo "FAILED TO START"
        why >&2
        exit 1
    fi
    echo STARTED
}

start_foreground() {
    prepare "$@"
    demand_data
    make_log_directory || true
    become_owner
    [ -n "${ZOO_NOEXEC:-}" ] || exec "${command[@]}"
    "${command[@]}"
}

stop() {
    local pid left="$stop_patience"
    prepare "$@"
    echo -n "Stopping zookeeper ... "
    if [ ! -f "$pid_file" ]; then
        echo "no zookeeper to stop (could not find file $pid_file)"
        # A unit of systemd has no such file.
        if [ "$directory" = /etc/quenda ] && systemctl is-active --quiet quenda 2>/dev/null; then
            echo "The service quenda runs: systemctl stop quenda" >&2
        fi
        return 0
    fi
    pid="$(cat "$pid_file")"
    if runs "$pid"; then
        if ! kill "$pid" 2>/dev/null && runs "$pid"; then
            echo "NOT STOPPED: process $pid is another user's."
            return 1
        fi
        while runs "$pid" && [ "$left" -gt 0 ]; do
            left=$((left - 1))
            sleep 0.1
        done
    fi
    if [ "$left" -eq 0 ]; then
        echo "STILL RUNNING as process $pid."
        return 1
    fi
    rm -f "$pid_file"
    echo STOPPED
}

print_command() {
    prepare "$@"
    echo "$(printf '"%s" ' "${command[@]}")> \"$out\" 2>&1 < /dev/null"
}

case "${1:-}" in
    start) start "${@:2}" ;;
    start-foreground) start_foreground "${@:2}" ;;
    stop) stop "${@:2}" ;;
    restart) (stop "${@:2}") && start "${@:2}" ;;
    print-cmd) print_command "${@:2}" ;;
    status)
        source_settings
        file="$(configuration_file "${2:-}")"
        echo "Using config: $file" >&2
        status "$file"
        ;;
    version) "$program" --version ;;
    *) usage ;;
esac
