#!/bin/bash
# In the place of the scripts by which the C client's own tests start and stop their servers.
#
#   tests/zkServer.sh start|startClean|startCleanReadOnly|startRequireSASLAuth [JAAS [readOnly]]|stop [ADDRESS]
#   bin/zkServer.sh start|stop|status CONFIG
#
# C_CLIENT_SERVER is the command that starts a server with a configuration file behind it. C_CLIENT_WORK is a folder for
# data, certificates and process ids. C_CLIENT_MEMBERS=3 makes three members of what the first script starts; the
# tests see the first. Ports are the tests' own, so this belongs into a network namespace.
set -u
work="$C_CLIENT_WORK"
members="${C_CLIENT_MEMBERS:-1}"

ask() { # ask PORT WORD
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf %s "$2" >&3
    cat <&3
    exec 3<&-
} 2>/dev/null

serves() {
    ask "$1" srvr | grep -q "^Mode: "
}

end() { # end PID-FILE [SIGNAL]
    [ -e "$1" ] || return 0
    local pid
    pid="$(cat "$1")"
    rm -f "$1"
    kill "-${2:-KILL}" "$pid" 2>/dev/null
    while grep -q '^State:[[:space:]]*[^ZX]' "/proc/$pid/status" 2>/dev/null; do sleep 0.02; done
}

begin() { # begin FOLDER CONFIG [NAME=VALUE ...]
    local folder="$1" config="$2"
    shift 2
    # shellcheck disable=SC2086 # a command with its arguments
    env "$@" setsid $C_CLIENT_SERVER "$config" >>"$folder/log" 2>&1 </dev/null 3<&- &
    echo $! >"$folder/pid"
}

wait_until() { # wait_until SECONDS COMMAND...
    local left=$(($1 * 20))
    shift
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep 0.05
    done
}

# The script of the tests on one server.

configuration() { # configuration NUMBER
    cat <<END
tickTime=500
initLimit=10
syncLimit=5
dataDir=$work/$1/data
maxClientCnxns=${ZKMAXCNXNS:-100}
localSessionsEnabled=true
clientPort=$((22180 + $1))
secureClientPort=$((22280 + $1))
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=/tmp/certs/server.pem
ssl.trustStore.location=/tmp/certs/servertrust.pem
4lw.commands.whitelist=*
admin.enableServer=false
END
}

stop_all() { # stop_all [SIGNAL]
    local file
    for file in "$work"/[123]/pid; do end "$file" "$@"; done
}

begin_all() { # begin_all COUNT OPTIONS VOTERS
    local number other
    for number in $(seq "$1"); do
        mkdir -p "$work/$number/data"
        configuration "$number" >"$work/$number/zoo.cfg"
        if [ "$3" = 3 ]; then
            for other in 1 2 3; do
                echo "server.$other=127.0.0.1:2288$other:3388$other" >>"$work/$number/zoo.cfg"
            done
            echo "$number" >"$work/$number/data/myid"
        fi
        begin "$work/$number" "$work/$number/zoo.cfg" SERVER_JVMFLAGS="$2"
    done
}

all_serve() { # all_serve COUNT
    local number
    for number in $(seq "$1"); do
        wait_until 60 serves $((22180 + number)) || { echo "the server does not serve" >&2; return 1; }
    done
}

start_all() { # start_all VERB [JAAS [readOnly]]
    local options="-Dzookeeper.extendedTypesEnabled=true -Dznode.container.checkIntervalMs=100"
    local read_only=""
    if [ "$1" = startClean ] || [ "$1" = startCleanReadOnly ]; then rm -rf "$work"/[123]; fi
    if [ "$1" = startRequireSASLAuth ]; then
        options="$options -Dzookeeper.sessionRequireClientSASLAuth=true"
        options="$options -Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
        if [ -n "${2:-}" ]; then options="$options -Djava.security.auth.login.config=$PWD/$2"; fi
        if [ -n "${3:-}" ]; then read_only=true; fi
    fi
    if [ "$1" = startCleanReadOnly ]; then read_only=true; fi
    if [ -z "$read_only" ]; then
        # What a read-only case leaves belongs to an ensemble of three, and one server alone refuses it.
        if [ "$members" = 1 ] && [ -e "$work/2" ]; then rm -rf "$work"/[123]; fi
        begin_all "$members" "$options" "$members"
        all_serve "$members"
        return
    fi
    # One of three that has lost the others. The three must have been there: nobody serves what was never founded. They
    # end in order: a member that is killed right after its start may not know what the three had committed.
    rm -rf "$work"/[123]
    begin_all 3 "$options" 3
    all_serve 3 || return
    stop_all TERM
    begin_all 1 "$options -Dreadonlymode.enabled=true" 3
    all_serve 1
}

# The script of the tests that reconfigure: one server for each configuration file.

each() { # each VERB CONFIG
    local folder port
    folder="$(sed -n 's/^dataDir=//p' "$2")"
    port="$(sed -n 's/^clientPort=//p' "$2")"
    case "$1" in
        start)
            end "$folder/pid"
            grep -v '^clientPort=' "$2" >"$folder/zoo.cfg" # it stands in the server's own line too
            printf '4lw.commands.whitelist=*\nadmin.enableServer=false\n' >>"$folder/zoo.cfg"
            begin "$folder" "$folder/zoo.cfg"
            ;;
        stop) end "$folder/pid" ;;
        status) ask "$port" srvr | grep "^Mode: " ;;
    esac
}

case "$0" in
    */bin/zkServer.sh) each "$1" "$2" || true ;;
    *)
        stop_all
        if [ "$1" != stop ]; then start_all "$@"; fi
        ;;
esac
