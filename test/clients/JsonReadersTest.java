// Java's readers of JSON: Jackson keeps the 64 bits of a number, Gson only in a field that is a long.
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.Gson;
import java.util.Map;

public class JsonReadersTest {
    static class Order {
        long id;
    }

    static void check(String what, boolean holds) {
        if (!holds)
            throw new AssertionError(what);
    }

    public static void main(String[] arguments) throws Exception {
        long id = 117443343637549057L;
        var json = "{\"id\": " + id + "}";
        check("Jackson's trees", new ObjectMapper().readTree(json).get("id").asLong() == id);
        check("Jackson's maps", new ObjectMapper().readValue(json, Map.class).get("id").equals(id));
        check("Gson's fields", new Gson().fromJson(json, Order.class).id == id);
        check("Gson's maps", ((Number) new Gson().fromJson(json, Map.class).get("id")).longValue() != id);
    }
}
