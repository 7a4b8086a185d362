// tokio-postgres: RETURNING has the id, which is an i64; COPY takes ids along that an array has.
use std::error::Error;

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

async fn insert_one(client: &Client) -> Result<i64, tokio_postgres::Error> {
    let row = client.query_one("INSERT INTO orders (item) VALUES ($1) RETURNING id", &[&"tea"]).await?;
    Ok(row.get("id"))
}

async fn insert_many(client: &Client, items: &[String]) -> Result<Vec<i64>, tokio_postgres::Error> {
    let sql = "INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id";
    Ok(client.query(sql, &[&items]).await?.iter().map(|row| row.get(0)).collect())
}

async fn copy(client: &Client, items: &[String]) -> Result<Vec<i64>, tokio_postgres::Error> {
    let ids: Vec<i64> = client.query_one("SELECT uidgen.uid_next_array($1)", &[&(items.len() as i64)]).await?.get(0);
    let sink = client.copy_in("COPY orders (id, item) FROM STDIN BINARY").await?;
    let writer = BinaryCopyInWriter::new(sink, &[Type::INT8, Type::TEXT]);
    tokio::pin!(writer);
    for (id, item) in ids.iter().zip(items) {
        writer.as_mut().write(&[id, item]).await?;
    }
    writer.finish().await?;
    Ok(ids)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name| std::env::var(name).unwrap();
    let source = format!(
        "host={} port={} user={} dbname={}",
        variable("PGHOST"), variable("PGPORT"), variable("PGUSER"), variable("PGDATABASE")
    );
    let (client, connection) = tokio_postgres::connect(&source, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text)").await?;
    let items: Vec<String> = (0..1000).map(|n| format!("item {n}")).collect();

    let id = insert_one(&client).await?;
    assert!(id > 1 << 53);
    let ids = insert_many(&client, &items).await?;
    assert!(ids.len() == 1000 && ids[0] > id && ids.windows(2).all(|pair| pair[0] < pair[1]));
    let ids = copy(&client, &items).await?;
    let row = client.query_one("SELECT count(*) FROM orders WHERE id = ANY($1)", &[&ids]).await?;
    assert_eq!(row.get::<_, i64>(0), 1000);

    // An i32 is an error when the column is read, not a wrong number.
    let row = client.query_one("SELECT id FROM orders LIMIT 1", &[]).await?;
    assert!(row.try_get::<_, i32>(0).is_err());
    Ok(())
}
