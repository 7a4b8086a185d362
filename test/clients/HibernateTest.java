// Hibernate: an entity has the id that the column's default draws, or one of an array of a generator, or one of the pooled
// optimizer's blocks, which overlap neither with those of another SessionFactory nor with those of segment_next.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import javax.persistence.Entity;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.SequenceGenerator;
import javax.persistence.Table;
import org.hibernate.HibernateException;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.GenericGenerator;
import org.hibernate.annotations.Proxy;
import org.hibernate.cfg.Configuration;
import org.hibernate.engine.SessionImplementor;
import org.hibernate.id.IdentifierGenerator;

public class HibernateTest {
    @Entity
    @Proxy(lazy = false)
    @Table(name = "orders")
    public static class Order {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;

        String item;
    }

    @Entity
    @Proxy(lazy = false)
    @Table(name = "invoices")
    public static class Invoice {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "invoices_seq")
        @SequenceGenerator(name = "invoices_seq", sequenceName = "invoices_seq", allocationSize = 50)
        Long id;
    }

    @Entity
    @Proxy(lazy = false)
    @Table(name = "payments")
    public static class Payment {
        @Id
        @GenericGenerator(name = "uid", strategy = "HibernateTest$UidGenerator")
        @GeneratedValue(generator = "uid")
        Long id;
    }

    public static class UidGenerator implements IdentifierGenerator {
        private final Queue<Long> ids = new ArrayDeque<>();

        @Override
        public synchronized Serializable generate(SessionImplementor session, Object entity) {
            if (ids.isEmpty()) {
                try {
                    fill(session.connection());
                } catch (SQLException error) {
                    throw new HibernateException(error);
                }
            }
            return ids.remove();
        }

        private void fill(Connection connection) throws SQLException {
            try (var draw = connection.prepareStatement("SELECT uidgen.uid_next_array(?)")) {
                draw.setInt(1, 50);
                var rows = draw.executeQuery();
                rows.next();
                ids.addAll(List.of((Long[]) rows.getArray(1).getArray()));
            }
        }
    }

    static final String url =
        "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");

    public static void main(String[] arguments) throws SQLException {
        // Where Hibernate looks for the entities of a program that is one source file.
        Thread.currentThread().setContextClassLoader(HibernateTest.class.getClassLoader());
        try (var connection = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"))) {
            execute(connection, "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)");
            execute(connection, "CREATE TABLE payments (id bigint PRIMARY KEY DEFAULT uidgen.uid_next())");
            testDefault(connection);
            testArrays(connection);
            // In this version a value v of the sequence stands for v - 50 to v - 1, with pooled-lo for v to v + 49.
            testPooled(connection, "false", "CREATE SEQUENCE invoices_seq INCREMENT 50 START 50", -50);
            testPooled(connection, "true", "CREATE SEQUENCE invoices_seq INCREMENT 50", 0);
        }
    }

    static void testDefault(Connection connection) throws SQLException {
        var factory = newFactory("false");
        var order = new Order();
        order.item = "tea";
        save(factory, order);
        check(order.id > 1L << 53, "an entity has its id");
        check(value(connection, "SELECT id FROM orders WHERE item = 'tea'") == order.id, "it is the id of the row");
        factory.close();
    }

    static void testArrays(Connection connection) throws SQLException {
        var factories = new SessionFactory[] {newFactory("false"), newFactory("false")};
        for (int n = 0; n < 200; n++)
            save(factories[n % 2], new Payment());
        check(value(connection, "SELECT count(*) FROM payments WHERE id > 1::bigint << 53") == 200, "ids of the generator");
        check(value(connection, "SELECT sum(ids) FROM uidgen.uid_stat WHERE kind = 'generator'") == 201, "in arrays of 50");
        for (var factory : factories)
            factory.close();
    }

    static void testPooled(Connection connection, String preferLo, String sequence, long offset) throws SQLException {
        execute(connection, "DROP SEQUENCE IF EXISTS invoices_seq");
        execute(connection, "DROP TABLE IF EXISTS invoices");
        execute(connection, "CREATE TABLE invoices (id bigint PRIMARY KEY)");
        execute(connection, sequence);
        long start = value(connection, "SELECT last_value FROM invoices_seq") + offset;
        Set<Long> ids = new HashSet<>();
        var factories = new SessionFactory[] {newFactory(preferLo), newFactory(preferLo)};
        for (int n = 0; n < 200; n++) {
            var invoice = new Invoice();
            save(factories[n % 2], invoice);
            check(ids.add(invoice.id), "no id is given twice");
            if (n == 99)
                check(value(connection, "SELECT last_value FROM invoices_seq") <= start - offset + 3 * 50, "one call for 50 ids");
            if (n >= 100 && n % 10 == 0) {
                long next = value(connection, "SELECT uidgen.segment_next('invoices_seq'::regclass)") + offset;
                for (long id = next; id < next + 50; id++)
                    check(ids.add(id), "nor is it in a block that another program takes");
            }
        }
        check(ids.contains(Math.max(start, 1)), "ids begin with the sequence");
        check(value(connection, "SELECT count(*) FROM invoices") == 200, "each entity has a row");
        for (var factory : factories)
            factory.close();
    }

    static void save(SessionFactory factory, Object entity) {
        var session = factory.openSession();
        session.beginTransaction();
        session.save(entity);
        session.getTransaction().commit();
        session.close();
    }

    static SessionFactory newFactory(String preferLo) {
        return new Configuration()
            .addAnnotatedClass(Order.class)
            .addAnnotatedClass(Invoice.class)
            .addAnnotatedClass(Payment.class)
            .setProperty("hibernate.id.new_generator_mappings", "true")
            .setProperty("hibernate.id.optimizer.pooled.prefer_lo", preferLo)
            .setProperty("hibernate.dialect", "org.hibernate.dialect.PostgreSQLDialect")
            .setProperty("hibernate.connection.url", url)
            .setProperty("hibernate.connection.username", System.getenv("PGUSER"))
            .setProperty("hibernate.connection.password", System.getenv("PGPASSWORD"))
            .buildSessionFactory();
    }

    static long value(Connection connection, String sql) throws SQLException {
        try (var statement = connection.createStatement()) {
            var rows = statement.executeQuery(sql);
            rows.next();
            return rows.getLong(1);
        }
    }

    static void execute(Connection connection, String sql) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    static void check(boolean holds, String text) {
        if (!holds)
            throw new AssertionError(text);
    }
}
