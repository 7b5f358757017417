#!/bin/bash
# Starts a member as the variables ZOO_… say. Everything else that it is given to run is run as it is.
#
# As root it sets the owner of the directories right and goes on as the user zookeeper. A configuration is written
# only where none is, and so is myid: files that are mounted win over every variable.
set -euo pipefail

: "${ZOO_CONF_DIR:=/conf}" "${ZOO_DATA_DIR:=/data}" "${ZOO_DATA_LOG_DIR:=/datalog}" "${ZOO_LOG_DIR:=/logs}"
export ZOO_CONF_DIR ZOO_DATA_DIR ZOO_DATA_LOG_DIR ZOO_LOG_DIR

say() {
    echo "docker-entrypoint: $*" >&2
}

starts_server() {
    case "${1:-} ${2:-}" in
        "zkServer.sh start" | "zkServer.sh start-foreground" | "quenda serve") return 0 ;;
        *) return 1 ;;
    esac
}

# Only what has another owner is touched: a volume with many files costs nothing at the second start.
own_directories() {
    local directory
    for directory in "$ZOO_DATA_DIR" "$ZOO_DATA_LOG_DIR" "$ZOO_LOG_DIR"; do
        mkdir -p "$directory"
        find "$directory" \( ! -user zookeeper -o ! -group zookeeper \) \
            -exec chown --no-dereference zookeeper:zookeeper {} + ||
            say "cannot set the owner of $directory; start the container with --user to do without"
    done
}

configuration_text() {
    local line
    cat <<END
dataDir=$ZOO_DATA_DIR
dataLogDir=$ZOO_DATA_LOG_DIR
tickTime=${ZOO_TICK_TIME:-2000}
initLimit=${ZOO_INIT_LIMIT:-5}
syncLimit=${ZOO_SYNC_LIMIT:-2}
autopurge.snapRetainCount=${ZOO_AUTOPURGE_SNAPRETAINCOUNT:-3}
autopurge.purgeInterval=${ZOO_AUTOPURGE_PURGEINTERVAL:-0}
maxClientCnxns=${ZOO_MAX_CLIENT_CNXNS:-60}
standaloneEnabled=${ZOO_STANDALONE_ENABLED:-true}
admin.enableServer=${ZOO_ADMINSERVER_ENABLED:-true}
END
    # Words are split at blanks and line ends; `set -f` keeps a * in them from becoming file names.
    set -f
    for line in ${ZOO_SERVERS:-server.${ZOO_MY_ID:-1}=localhost:2888:3888;2181}; do
        echo "$line"
    done
    if [ -n "${ZOO_4LW_COMMANDS_WHITELIST:-}" ]; then
        echo "4lw.commands.whitelist=$ZOO_4LW_COMMANDS_WHITELIST"
    fi
    for line in ${ZOO_CFG_EXTRA:-}; do
        echo "$line"
    done
    set +f
}

# On a read-only root the configuration directory cannot be written. The copy in the data directory is then made anew
# at every start, so that it never outlives the variables it came from.
write_configuration() {
    local file="$ZOO_CONF_DIR/zoo.cfg"
    [ -e "$file" ] && return
    mkdir -p "$ZOO_CONF_DIR" 2>/dev/null || true
    [ -w "$ZOO_CONF_DIR" ] || file="$ZOO_DATA_DIR/zoo.cfg"
    configuration_text >"$file"
}

write_my_id() {
    local file="$ZOO_DATA_DIR/myid" id
    if [ ! -e "$file" ]; then
        echo "${ZOO_MY_ID:-1}" >"$file"
        return
    fi
    read -r id <"$file" || true
    if [ -n "${ZOO_MY_ID:-}" ] && [ "$id" != "$ZOO_MY_ID" ]; then
        say "$file says $id, so ZOO_MY_ID=$ZOO_MY_ID has no effect"
    fi
}

demand_writable() {
    local directory
    for directory in "$ZOO_DATA_DIR" "$ZOO_DATA_LOG_DIR"; do
        mkdir -p "$directory" 2>/dev/null || true
        if [ ! -w "$directory" ]; then
            say "user $(id -u) cannot write to $directory: give the volume to that user, or start as root"
            exit 3
        fi
    done
}

# Flags alone are flags of the server.
case "${1:-}" in
    "" | -*) set -- quenda serve "$@" ;;
esac

if ! starts_server "$@"; then
    exec "$@"
fi
if [ "$(id -u)" -eq 0 ]; then
    own_directories
    exec setpriv --reuid=zookeeper --regid=zookeeper --init-groups --inh-caps=-all --no-new-privs "$0" "$@"
fi
demand_writable
write_configuration
write_my_id
case "$1 $*" in
    # There is nothing to come back to: a start in the background would end the container.
    "zkServer.sh zkServer.sh start "* | "zkServer.sh zkServer.sh start") set -- zkServer.sh start-foreground "${@:3}" ;;
    # The caller chose another configuration.
    "quenda "*" --config"* | "quenda "*" -c"*) ;;
    # Flags come after the file and overrule it.
    "quenda "*) set -- zkServer.sh start-foreground "" "${@:3}" ;;
esac
exec "$@"
