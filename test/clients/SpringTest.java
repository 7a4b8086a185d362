// Spring's JdbcTemplate, by which Spring Data JDBC inserts: a KeyHolder has the id.
import java.util.Map;
import org.springframework.jdbc.core.namedparam.MapSqlParameterSource;
import org.springframework.jdbc.core.namedparam.NamedParameterJdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.GeneratedKeyHolder;

public class SpringTest {
    public static void main(String[] arguments) {
        var url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        var source = new DriverManagerDataSource(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"));
        var jdbc = new NamedParameterJdbcTemplate(source);
        jdbc.getJdbcOperations().execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)");

        var keys = new GeneratedKeyHolder();
        jdbc.update("INSERT INTO orders (item) VALUES (:item)", new MapSqlParameterSource("item", "tea"), keys,
            new String[] {"id"});
        long id = keys.getKey().longValue();

        Long found = jdbc.queryForObject("SELECT id FROM orders WHERE item = :item", Map.of("item", "tea"), Long.class);
        if (id != found || id <= 1L << 53)
            throw new AssertionError("the key is the id of the row");
    }
}
