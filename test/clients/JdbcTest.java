// JDBC: getGeneratedKeys has the ids, also those of a batch.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Properties;
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
