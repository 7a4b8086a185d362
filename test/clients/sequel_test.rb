# Sequel: insert and a model's save return the id by RETURNING; a pluck of nested JSON has Integers.
require 'sequel'

DB = Sequel.connect(adapter: 'postgres', database: ENV['PGDATABASE'], host: ENV['PGHOST'], port: ENV['PGPORT'],
                    user: ENV['PGUSER'])
DB.create_table(:orders) do
  column :id, :bigint, primary_key: true, default: Sequel.lit('uidgen.uid_next()')
  column :item, String
end

class Order < Sequel::Model
end

def check(text, holds)
  raise text unless holds
end

id = DB[:orders].insert(item: 'tea')
check 'insert returns the id', id.is_a?(Integer) && id > 2**53
order = Order.create(item: 'milk')
check 'a model has its id', order.id > id && Order[order.id].item == 'milk'
ids = DB[:orders].returning(:id).multi_insert(Array.new(1000) { { item: 'item' } }, return: :primary_key)
check 'the ids of many rows', ids.uniq.size == 1000 && ids.min > order.id

# An adopted serial column: Sequel keeps the sequence's name, but does not call it.
DB.run('CREATE TABLE notes (id bigserial PRIMARY KEY)')
DB.run("SELECT uidgen.uid_adopt('notes', 'id', dry_run => false)")
check 'an adopted table', DB[:notes].insert({}) > 2**53
