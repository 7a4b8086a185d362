# Rails' ActiveRecord: create and insert_all return ids; schema.rb has the default, and loads into another database.
require 'active_record'
require 'stringio'

# In 7.2 schema.rb would create all schemas.
ActiveSupport.on_load(:active_record_postgresqladapter) do
  prepend(Module.new do
    def schema_names
      super - %w[uidgen uid_internal uid_secrets uid_generators uid_segments uid_keys]
    end
  end)
end

ActiveRecord::Base.establish_connection(adapter: 'postgresql', schema_search_path: 'public')
ActiveRecord::Schema.verbose = ActiveRecord::Migration.verbose = false

class CreateOrders < ActiveRecord::Migration[6.1]
  def change
    create_table :orders, id: :bigint, default: -> { 'uidgen.uid_next()' } do |t|
      t.text :item
    end
    create_table :lines, id: :bigint, default: -> { 'uidgen.uid_next()' } do |t|
      t.references :order, foreign_key: true
      t.integer :small
    end
  end
end

class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true

  def serializable_hash(options = nil)
    super.to_h { |name, value| [name, value.is_a?(Integer) && name.match?(/(\A|_)id\z/) ? value.to_s : value] }
  end
end

class Order < ApplicationRecord
  has_many :lines
end

class Line < ApplicationRecord
  belongs_to :order
end

def check(text, holds)
  raise text unless holds
end

# Since 7.2 the dumper takes a connection from a pool.
def dump
  source = ActiveRecord.version < Gem::Version.new('7.2') ? :connection : :connection_pool
  ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.public_send(source), StringIO.new).string
end

CreateOrders.migrate(:up)
order = Order.create!(item: 'tea')
check 'create! returns the id', order.id.is_a?(Integer) && order.id > 2**53
check 'the id is that of the row', Order.find(order.id).item == 'tea'
line = Line.create!(order: order, small: 7)
check 'a reference holds it', line.reload.order_id == order.id
check 'JSON has ids as strings, and no other number', order.as_json(include: :lines) ==
  { 'id' => order.id.to_s, 'item' => 'tea', 'lines' => [{ 'id' => line.id.to_s, 'order_id' => order.id.to_s, 'small' => 7 }] }

ids = Order.insert_all!(Array.new(1000) { |n| { item: "item #{n}" } }, returning: :id).rows.flatten
check 'insert_all! returns the ids', ids.size == 1000 && ids == ids.sort.uniq && ids.first > order.id

begin
  Line.create!(order: order, small: order.id)
  raise 'an integer column holds an id'
rescue ActiveModel::RangeError => e
  check e.message, e.message == "#{order.id} is out of range for ActiveModel::Type::Integer with limit 4 bytes"
end

# db/schema.rb
schema = dump
check schema, schema.include?('create_table "orders", id: :bigint, default: -> { "uidgen.uid_next()" }')
check schema, schema.include?('t.bigint "order_id"')
check 'no table of the extension is in schema.rb', schema.scan(/create_table "(\w+)"/).flatten.sort == %w[lines orders]
check schema, schema.include?('enable_extension "uidgen"')
check schema, !schema.include?('create_schema')

# What db:create and db:schema:load do for a test database.
config = ActiveRecord::Base.connection_db_config.configuration_hash.merge(database: 'test_rails', template: 'template_uidgen')
ActiveRecord::Base.connection.create_database(config[:database], config)
ActiveRecord::Base.establish_connection(config)
eval(schema)
check 'schema.rb is the same after a load', dump == schema
check 'and rows have ids', Order.create!.id > ids.last

# With the extension's schema in the search_path its tables would be in schema.rb.
ActiveRecord::Base.connection.schema_search_path = 'public,uidgen'
check 'worker_node is there', dump.include?('create_table "worker_node"')
