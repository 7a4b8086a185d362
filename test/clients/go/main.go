// database/sql with lib/pq and pgx: RETURNING has the id, which is an int64; LastInsertId fails; pgx copies rows.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/jackc/pgx/v4"
	_ "github.com/jackc/pgx/v4/stdlib"
	"github.com/lib/pq"
)

type Order struct {
	ID   int64  `json:"id,string"`
	Item string `json:"item"`
}

func check(holds bool, text string) {
	if !holds {
		panic(text)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func insertOne(db *sql.DB) (id int64, err error) {
	err = db.QueryRow("INSERT INTO orders (item) VALUES ($1) RETURNING id", "tea").Scan(&id)
	return id, err
}

func insertMany(db *sql.DB, items []string) (ids []int64, err error) {
	rows, err := db.Query("INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id", pq.Array(items))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func copyRows(ctx context.Context, conn *pgx.Conn, items []string) ([]int64, error) {
	var ids []int64
	if err := conn.QueryRow(ctx, "SELECT uidgen.uid_next_array($1)", len(items)).Scan(&ids); err != nil {
		return nil, err
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "item"},
		pgx.CopyFromSlice(len(items), func(n int) ([]any, error) { return []any{ids[n], items[n]}, nil }))
	return ids, err
}

func main() {
	items := make([]string, 1000)
	for n := range items {
		items[n] = "item " + strconv.Itoa(n)
	}
	source := fmt.Sprintf("host=%s port=%s user=%s dbname=%s", os.Getenv("PGHOST"), os.Getenv("PGPORT"), os.Getenv("PGUSER"),
		os.Getenv("PGDATABASE"))
	first := must(sql.Open("postgres", source))
	must(first.Exec("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)"))

	for _, driver := range []string{"postgres", "pgx"} {
		db := must(sql.Open(driver, source))
		id := must(insertOne(db))
		check(id > 1<<53, "an id is an int64")
		ids := must(insertMany(db, items))
		check(len(ids) == 1000 && ids[0] > id && ids[999] > ids[0], "the ids of many rows")
		result := must(db.Exec("INSERT INTO orders (item) VALUES ('milk')"))
		_, err := result.LastInsertId()
		check(err != nil, "there is no LastInsertId")
		var small int32
		err = db.QueryRow("SELECT id FROM orders LIMIT 1").Scan(&small)
		check(err != nil, "an int32 is too small")

		text := string(must(json.Marshal(Order{id, "tea"})))
		check(text == fmt.Sprintf(`{"id":"%d","item":"tea"}`, id), text)
		// A field of type any gets a float64.
		var loose map[string]any
		check(json.Unmarshal([]byte(fmt.Sprintf(`{"id": %d}`, ids[0]|1)), &loose) == nil, "JSON")
		check(int64(loose["id"].(float64)) != ids[0]|1, "a float64 changes the id")
	}

	ctx := context.Background()
	conn := must(pgx.Connect(ctx, source))
	ids := must(copyRows(ctx, conn, items))
	var count int
	check(conn.QueryRow(ctx, "SELECT count(*) FROM orders WHERE id = ANY($1)", ids).Scan(&count) == nil, "count")
	check(count == 1000, "COPY takes the ids along")
	fmt.Println(count)
}
