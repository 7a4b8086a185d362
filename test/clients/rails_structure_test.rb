# Rails with structure.sql, and a table whose default draws from a generator for numbers of JavaScript: the file has the
# generator if all schemas are dumped, and another database that loads it draws.
require 'active_record'
require 'tempfile'

ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: ENV['PGDATABASE'], schema_search_path: 'public')
ActiveRecord::Schema.verbose = ActiveRecord::Migration.verbose = false
ActiveRecord::Base.dump_schemas = :all

class CreatePages < ActiveRecord::Migration[6.1]
  def up
    execute "SELECT uidgen.uid_generator_create('pages', 'js53')"
    create_table :pages, id: :bigint, default: -> { "uidgen.uid_next('uid_generators.pages')" } do |t|
      t.text :body
    end
  end

  def down
    drop_table :pages
    execute "SELECT uidgen.uid_generator_drop('uid_generators.pages')"
  end
end

class Page < ActiveRecord::Base
end

def check(text, holds)
  raise text unless holds
end

def structure(config)
  file = Tempfile.new(['structure', '.sql'])
  ActiveRecord::Tasks::DatabaseTasks.structure_dump(config, file.path)
  file
end

# pg_dump puts a random key into the commands that guard the file.
def without_keys(file)
  File.read(file.path).gsub(/^\\(un)?restrict .*$/, '')
end

CreatePages.migrate(:up)
page = Page.create!(body: 'tea')
check 'an id is a number of JavaScript', page.id.between?(1, 2**53 - 1)

config = ActiveRecord::Base.connection_db_config
file = structure(config)
text = File.read(file.path)
check text, text.include?('SECURITY LABEL FOR uidgen ON SEQUENCE uid_generators.pages')
check text, !text.include?('worker_node')

# What db:create and db:structure:load do for a test database, to which the file brings the extension.
other = config.configuration_hash.merge(database: 'test_structure')
ActiveRecord::Base.connection.create_database(other[:database])
ActiveRecord::Base.establish_connection(other)
other_config = ActiveRecord::Base.connection_db_config
ActiveRecord::Tasks::DatabaseTasks.structure_load(other_config, file.path)
check 'a row has an id of js53', Page.create!(body: 'milk').id.between?(1, 2**53 - 1)
check 'the file is the same after a load', without_keys(structure(other_config)) == without_keys(file)

# The file has no privileges.
granted = ActiveRecord::Base.connection.select_value("SELECT has_schema_privilege('public', 'uidgen', 'USAGE')")
check 'the schema is the owner\'s alone', !granted

# Without this setting the file has only the schemas of schema_search_path, and so no generator.
ActiveRecord::Base.dump_schemas = :schema_search_path
check 'the file has no generator', !File.read(structure(config).path).include?('uid_generators.pages IS')
