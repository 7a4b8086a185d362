// An HTTP server with Leaf's paths, of the JDK alone: each answer is an id, or the error of the database.
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

public class IdServerTest {
    static final HttpClient CLIENT = HttpClient.newHttpClient();

    static HttpServer start(DataSource pool, int port) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true"); // or answers on a kept connection come 40 ms late
        var server = HttpServer.create(new InetSocketAddress(port), 0);
        server.setExecutor(Executors.newFixedThreadPool(10));
        server.createContext("/api/segment/get/", answer(pool, "SELECT uidgen.segment_next(?)"));
        server.createContext("/api/snowflake/get/",
            answer(pool, "SELECT uidgen.uid_next('uid_generators.ticket') WHERE ? <> ''"));
        server.start();
        return server;
    }

    static HttpHandler answer(DataSource pool, String query) {
        return exchange -> {
            String answer;
            int status = 200;
            try (var connection = pool.getConnection(); var draw = connection.prepareStatement(query)) {
                draw.setString(1, exchange.getRequestURI().getPath().replaceFirst(".*/", ""));
                var row = draw.executeQuery();
                row.next();
                answer = row.getString(1);
            } catch (SQLException error) {
                answer = error.getMessage();
                status = 500;
            }
            byte[] body = answer.getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Cache-Control", "no-store");
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        };
    }

    public static void main(String[] arguments) throws IOException, InterruptedException, SQLException {
        var source = new PGSimpleDataSource();
        source.setUrl("jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"));
        source.setUser(System.getenv("PGUSER"));
        source.setPassword(System.getenv("PGPASSWORD"));
        try (var connection = source.getConnection(); var statement = connection.createStatement()) {
            statement.execute("SELECT uidgen.segment_create('orders', 81234002, 2000)");
            statement.execute("SELECT uidgen.segment_create('\u652f\u4ed8', 1, 2000)");
            statement.execute("SELECT uidgen.uid_generator_create('ticket', 'leaf')");
        }
        checkIsPrompt();
        var server = start(source, 0);
        try {
            String url = "http://127.0.0.1:" + server.getAddress().getPort();
            check(get(url + "/api/segment/get/orders"), 200, "81234002");
            check(get(url + "/api/segment/get/orders"), 200, "81234003");
            check(get(url + "/api/segment/get/%E6%94%AF%E4%BB%98"), 200, "1");
            check(get(url + "/api/snowflake/get/orders"), 200, "\\d{19}");
            check(get(url + "/api/segment/get/none"), 500, "(?s)ERROR: segment or sequence \"none\" does not exist.*");
        } finally {
            stop(server);
        }
    }

    static HttpResponse<String> get(String url) throws IOException, InterruptedException {
        return CLIENT.send(HttpRequest.newBuilder(URI.create(url)).build(), BodyHandlers.ofString());
    }

    // A client acknowledges a part of an answer 40 ms later at the earliest. On a slow machine one call is fast enough.
    static void checkIsPrompt() throws IOException, InterruptedException {
        var server = start(new PGSimpleDataSource() {
            @Override public Connection getConnection() throws SQLException {
                throw new SQLException("no connection");
            }
        }, 0);
        try {
            for (int call = 0; call < 500; call++) {
                long start = System.nanoTime();
                check(get("http://127.0.0.1:" + server.getAddress().getPort() + "/api/segment/get/orders"), 500, "no connection");
                if (System.nanoTime() - start < 30_000_000)
                    return;
            }
            throw new AssertionError("no answer on a kept connection came within 30 ms");
        } finally {
            stop(server);
        }
    }

    static void stop(HttpServer server) {
        server.stop(0);
        ((ExecutorService) server.getExecutor()).shutdown();
    }

    static void check(HttpResponse<String> response, int status, String pattern) {
        if (response.statusCode() != status || !response.body().matches(pattern))
            throw new AssertionError(response.uri() + " answers " + response.statusCode() + ": " + response.body());
        if (!response.headers().firstValue("Cache-Control").equals(Optional.of("no-store")))
            throw new AssertionError("a cache could answer " + response.uri());
    }
}
