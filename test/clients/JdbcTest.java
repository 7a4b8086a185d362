// JDBC: getGeneratedKeys has the ids, also those of a batch. Blocks of nextval, segment_next and segment_reserve, as
// Hibernate's pooled optimizer takes them, do not overlap.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;

public class JdbcTest {
    public static void main(String[] arguments) throws SQLException {
        var url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        var properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        properties.setProperty("password", System.getenv("PGPASSWORD"));
        try (var connection = DriverManager.getConnection(url, properties)) {
            execute(connection, "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)");
            testOne(connection);
            testPooledOptimizer(connection);
            testReserve(connection);
        }
        for (var rewrite : List.of("false", "true")) {
            properties.setProperty("reWriteBatchedInserts", rewrite);
            try (var connection = DriverManager.getConnection(url, properties)) {
                testBatch(connection);
            }
        }
    }

    static void testOne(Connection connection) throws SQLException {
        long id;
        try (var insert = connection.prepareStatement("INSERT INTO orders (item) VALUES (?)", new String[] {"id"})) {
            insert.setString(1, "tea");
            insert.executeUpdate();
            ResultSet keys = insert.getGeneratedKeys();
            keys.next();
            id = keys.getLong("id");
        }
        check(id > 1L << 53, "an id is a long");
        check(value(connection, "SELECT id FROM orders WHERE item = 'tea'") == id, "it is the id of the row");
        try (var select = connection.createStatement()) {
            ResultSet rows = select.executeQuery("SELECT id FROM orders");
            rows.next();
            rows.getInt("id");
            check(false, "an id is no int");
        } catch (SQLException error) {
            check(error.getMessage().equals("Bad value for type int : " + id), error.getMessage());
        }
    }

    static void testBatch(Connection connection) throws SQLException {
        var ids = new TreeSet<Long>();
        try (var insert = connection.prepareStatement("INSERT INTO orders (item) VALUES (?)", new String[] {"id"})) {
            for (int n = 0; n < 1000; n++) {
                insert.setString(1, "item " + n);
                insert.addBatch();
            }
            insert.executeBatch();
            ResultSet keys = insert.getGeneratedKeys();
            while (keys.next())
                check(ids.add(keys.getLong(1)), "no id comes twice");
        }
        check(ids.size() == 1000, "a batch has the ids of all its rows");
    }

    // What Hibernate sends for a SequenceGenerator with allocationSize = 50: nextval once for 50 ids. A value v stands
    // for v - 49 to v.
    static void testPooledOptimizer(Connection connection) throws SQLException {
        execute(connection, "CREATE SEQUENCE orders_seq INCREMENT 50 START 50");
        Set<Long> ids = new HashSet<>();
        for (int block = 0; block < 200; block++) {
            var draw = block % 2 == 0 ? "nextval('orders_seq')" : "uidgen.segment_next('orders_seq'::regclass)";
            long last = value(connection, "SELECT " + draw);
            for (long id = last - 49; id <= last; id++)
                check(ids.add(id) && id > 0, "blocks of nextval and segment_next do not overlap");
        }
    }

    // The same without a sequence whose increment has to agree with allocationSize.
    static void testReserve(Connection connection) throws SQLException {
        execute(connection, "CREATE SEQUENCE invoices_seq");
        Set<Long> ids = new HashSet<>();
        for (int size = 1; size <= 100; size++) {
            try (var reserve = connection.prepareStatement(
                     "SELECT first, last FROM uidgen.segment_reserve('invoices_seq'::regclass, ?)")) {
                reserve.setLong(1, size);
                ResultSet block = reserve.executeQuery();
                block.next();
                for (long id = block.getLong("first"); id <= block.getLong("last"); id++)
                    check(ids.add(id), "no value is in two blocks");
            }
            check(ids.add(value(connection, "SELECT uidgen.segment_next('invoices_seq'::regclass)")),
                "nor does segment_next return one of a block");
        }
        check(ids.size() == 5050 + 100, "a block has as many values as asked for");
    }

    static long value(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery(sql);
            rows.next();
            return rows.getLong(1);
        }
    }

    static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    static void check(boolean holds, String text) {
        if (!holds)
            throw new AssertionError(text);
    }
}
