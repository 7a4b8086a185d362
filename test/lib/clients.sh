# Runs the programs of test/clients against a server of their own. Each runs as the owner of a database that has the
# extension in the schema uidgen and the js53 generator `web`, and finds it with libpq's environment variables. Each block of
# code of docs/clients.md and docs/segments.md must be in a program. Sourced by sections.sh. setup_clients has put what is
# not installed into $UIDGEN_WORK/clients. The programs run from a copy there, where Node.js finds its modules.
# shellcheck shell=sh
: "${bindir:?}" "${server_complaints:?}" # pg.sh sets them

# It listens on localhost too, for JDBC, which does not connect to Unix sockets. The programs' role owns their databases
# and is no superuser, so the extension comes with the template.
start_server_for_clients() {
    mkdir -p "$UIDGEN_WORK/clients"
    cp -R test/clients/. "$UIDGEN_WORK/clients"
    make_server server-clients "$UIDGEN_WORK/tree-main"
    PGPORT=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
    PGPASSWORD=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    export PGPORT PGPASSWORD
    printf '%s\n' "listen_addresses = '127.0.0.1'" "port = $PGPORT" 'wal_level = logical' \
        >>"$UIDGEN_WORK/server-clients/postgresql.conf"
    # A server that has this setting wants wal2json in it.
    "$UIDGEN_WORK/tree-main$bindir/postgres" -D "$UIDGEN_WORK/server-clients" -C output_plugin_libraries >/dev/null 2>&1 &&
        echo "output_plugin_libraries = 'pgoutput, wal2json'" >>"$UIDGEN_WORK/server-clients/postgresql.conf"
    printf '%s\n' 'local all all trust' 'host all app 127.0.0.1/32 scram-sha-256' \
        >"$UIDGEN_WORK/server-clients/pg_hba.conf"
    start_server server-clients "$UIDGEN_WORK/tree-main"
    query postgres "CREATE ROLE app LOGIN CREATEDB PASSWORD '$PGPASSWORD'"
    query postgres 'CREATE DATABASE template_uidgen IS_TEMPLATE true'
    query template_uidgen 'CREATE SCHEMA uidgen'
    query template_uidgen 'CREATE EXTENSION uidgen SCHEMA uidgen'
    query template_uidgen 'GRANT USAGE ON SCHEMA uidgen TO PUBLIC'
}

query() {
    PGOPTIONS="-c client_min_messages=warning" psql -XAtq -v ON_ERROR_STOP=1 -d "$1" -c "$2" >/dev/null
}

# client file probe command...: runs a program in a database of its own, which is one test. It is skipped if the probe
# fails, a command that needs the program's client.
client() {
    file=$1
    probe=$2
    shift 2
    if ! sh -c "$probe" >/dev/null 2>&1; then
        skip "$file: $probe"
        return 0
    fi
    database=$(echo "$file" | sed 's/\W.*//' | tr '[:upper:]' '[:lower:]')
    query postgres "CREATE DATABASE $database TEMPLATE template_uidgen OWNER app"
    query "$database" "SELECT uidgen.uid_generator_create('web', 'js53')"
    query "$database" "GRANT USAGE ON SEQUENCE uid_generators.web TO app"
    expect "test/clients/$file" env PGDATABASE="$database" PGUSER="${client_role:-app}" \
        timeout --kill-after=30 1800 "$@" || true
}

# Debian's Python, not another one that is first in the path.
python_client() {
    client "$1" "/usr/bin/python3 -c 'import $2'" /usr/bin/python3 "$1"
}

node_client() {
    client "$1" "node --input-type=module -e \"import '$2'\"" node "$1"
}

# go_client directory import: with packages of Debian only.
go_client() {
    client "$1" "test -d /usr/share/gocode/src/$2" sh -c \
        "cd $1 && GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=\$TMPDIR/go go run main.go"
}

# rust_client directory crate: Debian's compiler and crates, not others that are first in the path.
rust_client() {
    client "$1" "/usr/bin/cargo --version && ls /usr/share/cargo/registry/$2-*" sh -c \
        "cd $1 && PATH=/usr/bin:/bin CARGO_HOME=\$TMPDIR/cargo CARGO_TARGET_DIR=\$TMPDIR/rust cargo run --offline --quiet"
}

# java_client file library...: the libraries are names of Debian's jar files.
java_client() {
    file=$1
    shift
    libraries=$(printf '/usr/share/java/%s.jar:' "$@")
    client "$file" "javac -version && ls $(echo "$libraries" | tr : ' ')" java -cp "$libraries" "$file"
}

sql_client() {
    client "$1" "$2" psql -XAtq -v ON_ERROR_STOP=1 -f "$1"
}

extension_client() {
    sql_client "$1" "test -e $UIDGEN_WORK/tree-main$("$PG_CONFIG" --sharedir)/extension/$2.control"
}

section_clients() {
    PATH=$UIDGEN_WORK/tree-main$bindir:$UIDGEN_WORK/clients/usr/sbin:$PATH
    LD_LIBRARY_PATH=$(echo "$UIDGEN_WORK"/clients/usr/lib/*-linux-gnu)
    export PATH LD_LIBRARY_PATH
    start_server_for_clients
    # What a migration of a program begins with is the page's statement.
    # shellcheck disable=SC2016 # not for the shell
    sed -n '/^DO \$\$ BEGIN$/,/^END \$\$;$/p' docs/clients.md >"$UIDGEN_WORK/clients/extension.sql"
    checkout=$PWD
    cd "$UIDGEN_WORK/clients" || return
    python_client psycopg_test.py psycopg
    python_client psycopg2_test.py psycopg2
    python_client peewee_test.py 'peewee, psycopg2'
    python_client pony_test.py 'pony, psycopg2'
    python_client pandas_test.py 'pandas, psycopg2'
    python_client sqlalchemy_test.py 'alembic, psycopg2, sqlalchemy'
    client django_test.sh "/usr/bin/python3 -c 'import django, psycopg2'" sh django_test.sh
    client activerecord_test.rb 'ruby -e "require %q(active_record); require %q(pg)"' ruby activerecord_test.rb
    client rails_structure_test.rb 'ruby -e "require %q(active_record); require %q(pg)"' ruby rails_structure_test.rb
    client sequel_test.rb 'ruby -e "require %q(sequel); require %q(pg)"' ruby sequel_test.rb
    client database_cleaner_test.rb 'ruby -e "require %q(active_record); require %q(database_cleaner); require %q(pg)"' \
        ruby database_cleaner_test.rb
    client pdo_test.php "php -r 'new ReflectionExtension(\"pdo_pgsql\");'" php pdo_test.php
    client doctrine_test.php "php -r 'require \"Doctrine/ORM/autoload.php\";'" php doctrine_test.php
    client laravel_test.php "php -r 'require \"Illuminate/Database/autoload.php\"; new ReflectionExtension(\"pdo_pgsql\");'" \
        php laravel_test.php
    client dbi_test.pl "/usr/bin/perl -MDBD::Pg -e1" /usr/bin/perl dbi_test.pl
    client dbix_class_test.pl "/usr/bin/perl -MDBD::Pg -MDBIx::Class -e1" /usr/bin/perl dbix_class_test.pl
    client rose_test.pl "/usr/bin/perl -MDBD::Pg -MRose::DB::Object -e1" /usr/bin/perl rose_test.pl
    go_client go github.com/jackc/pgx
    rust_client rust tokio-postgres
    node_client node_postgres_test.mjs pg
    node_client json_test.mjs kysely
    node_client knex_test.mjs knex
    node_client objection_test.mjs objection
    node_client drizzle_test.mjs drizzle-orm
    node_client drizzle_kit_test.mjs drizzle-kit/api
    node_client mikro_orm_test.mjs @mikro-orm/postgresql
    node_client prisma_test.mjs @prisma/adapter-pg
    node_client typeorm_test.mjs typeorm
    node_client sequelize_test.mjs sequelize
    node_client openapi_test.mjs openapi-client-axios
    java_client JdbcTest.java postgresql
    java_client IdServerTest.java postgresql
    java_client JsonReadersTest.java gson jackson-databind jackson-core jackson-annotations
    java_client SpringTest.java postgresql spring3-jdbc spring3-core spring3-beans spring3-transaction commons-logging
    java_client HibernateTest.java postgresql hibernate-core hibernate-commons-annotations geronimo-jpa_2.0_spec \
        geronimo-jta-1.2-spec commons-collections3 antlr dom4j javassist slf4j-api slf4j-nop
    client json_readers_test.sh 'jq --version && ruby --version && node --version' sh json_readers_test.sh
    client pgbouncer_test.py "pgbouncer --version && /usr/bin/python3 -c 'import psycopg'" \
        /usr/bin/python3 pgbouncer_test.py
    client pgloader_test.sh 'pgloader --version' sh pgloader_test.sh
    sql_client statements_test.sql true
    client_role=postgres
    client pgcopydb_test.sh 'pgcopydb --version' sh pgcopydb_test.sh
    sql_client wal2json_test.sql "test -e $UIDGEN_WORK/tree-main$("$PG_CONFIG" --pkglibdir)/wal2json.so"
    # shellcheck disable=SC2016 # the end of a block
    sed -n '/^CREATE SCHEMA partman;/,/^```$/{/^```$/!p}' "$checkout/docs/clients.md" >partman_recipe.sql
    extension_client partman_test.sql pg_partman
    cd "$checkout" || return
    stop_server server-clients "$UIDGEN_WORK/tree-main" immediate
    # shellcheck disable=SC2016 # for the inner shell
    expect "the server has logged no failed assertion and no leak" sh -c '! grep -E "$1" "$2"' sh \
        "$server_complaints" "$UIDGEN_WORK/log/server-server-clients" || true
}
