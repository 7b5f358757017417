#!/bin/bash
# The words of ZooKeeper's zkServer.sh that make sense in a container: start-foreground, status, version.
#
#   zkServer.sh [--config DIR] start-foreground [FILE [FLAG…]]     FLAGs are those of `quenda serve`
#   zkServer.sh [--config DIR] status [FILE]                       0 and its mode if the member serves, or leads, else 1
#   zkServer.sh version
#
# A FILE that is no path lies in the configuration directory; the default is zoo.cfg.
set -uo pipefail

directory="${ZOOCFGDIR:-${ZOO_CONF_DIR:-/conf}}"
if [ "${1:-}" = --config ]; then
    directory="${2:?--config needs a directory}"
    shift 2
fi

configuration_file() {
    local file="${1:-${ZOOCFG:-zoo.cfg}}"
    case "$file" in
        */*) ;;
        *) file="$directory/$file" ;;
    esac
    # Where a read-only root made the entrypoint put it.
    if [ ! -e "$file" ] && [ -z "${1:-}" ] && [ -e "${ZOO_DATA_DIR:-/data}/zoo.cfg" ]; then
        file="${ZOO_DATA_DIR:-/data}/zoo.cfg"
    fi
    echo "$file"
}

# value KEY FILE: the last value of a key, without blanks around it.
value() {
    local key="${1//./\\.}"
    sed -n "s/^[[:blank:]]*${key}[[:blank:]]*[=:[:blank:]][[:blank:]]*//p" "$2" 2>/dev/null |
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
    timeout 6 quenda status --servers "$host:$port" --json "${tls[@]}" 2>/dev/null |
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

start_foreground() {
    local file settings
    file="$(configuration_file "${1:-}")"
    for settings in zookeeper-env.sh java.env; do
        # shellcheck disable=SC1090 # the operator's
        [ ! -f "$directory/$settings" ] || . "$directory/$settings"
    done
    [ -z "${JVMFLAGS+set}" ] || export JVMFLAGS
    [ -z "${SERVER_JVMFLAGS+set}" ] || export SERVER_JVMFLAGS
    exec quenda serve --config "$file" "${@:2}"
}

case "${1:-}" in
    start-foreground) start_foreground "${@:2}" ;;
    # In a container there is nothing to come back to: a start in the background would end it.
    start) start_foreground "${@:2}" ;;
    status)
        file="$(configuration_file "${2:-}")"
        echo "Using config: $file" >&2
        status "$file"
        ;;
    version) quenda --version ;;
    *)
        echo "Usage: $0 [--config <conf-dir>] {start-foreground|start|status|version}" >&2
        exit 1
        ;;
esac
