# DatabaseCleaner: truncation empties the tables. Generators go on, above the ids that were there; a segment that a table has
# from its sequence restarts with the table, as a sequence does.
require 'active_record'
require 'database_cleaner'

ActiveRecord::Base.establish_connection(adapter: 'postgresql', schema_search_path: 'public')
ActiveRecord::Base.connection.execute(<<~SQL)
  CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT uidgen.uid_next(), item text);
  CREATE TABLE pages (id bigint PRIMARY KEY DEFAULT uidgen.uid_next('uid_generators.web'), item text);
  CREATE TABLE invoices (id bigserial PRIMARY KEY, item text);
  SET client_min_messages = warning;
  SELECT uidgen.uid_adopt('invoices', 'id', 'invoices_id_seq', dry_run => false);
SQL

class Order < ActiveRecord::Base; end
class Page < ActiveRecord::Base; end
class Invoice < ActiveRecord::Base; end

last = [Order, Page].map { |table| table.create!.id }
Invoice.create!
[{}, { pre_count: true }].each do |options|
  DatabaseCleaner.clean_with(:truncation, options)
  raise unless [Order, Page, Invoice].sum(&:count).zero?
  ids = [Order, Page].map { |table| table.create!.id }
  raise unless ids.zip(last).all? { |id, before| id > before }
  raise unless Invoice.create!.id == 1
  last = ids
end

# With a transaction nothing restarts.
DatabaseCleaner.strategy = :transaction
DatabaseCleaner.start
drawn = Order.create!.id
DatabaseCleaner.clean
raise unless Order.count == 1 && Order.create!.id > drawn
