#!/usr/bin/python3
# SQLAlchemy and Alembic: an object has its id after a flush, and autogenerate writes a migration that works, and then
# finds nothing to change.
import inspect

from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.migration import MigrationContext
from alembic.operations import Operations
import sqlalchemy
from sqlalchemy import BigInteger, Column, ForeignKey, Text, create_engine, event, insert, text
from sqlalchemy.orm import Session, declarative_base

Base = declarative_base()


class Order(Base):
    __tablename__ = 'orders'
    id = Column(BigInteger, primary_key=True, server_default=text('uidgen.uid_next()'))
    item = Column(Text)


class Line(Base):
    __tablename__ = 'lines'
    order_id = Column(BigInteger, ForeignKey('orders.id'), primary_key=True)


def include_name(name, type_, parent_names):
    return type_ != 'schema' or name not in ('uidgen', 'uid_internal', 'uid_secrets', 'uid_generators', 'uid_segments', 'uid_keys')


def differences(engine, **options):
    options = {'compare_type': True, 'compare_server_default': True, **options}
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        return produce_migrations(context, Base.metadata), compare_metadata(context, Base.metadata)


engine = create_engine('postgresql+psycopg2://')
upgrade = render_python_code(differences(engine)[0].upgrade_ops)
assert "server_default=sa.text('uidgen.uid_next()')" in upgrade, upgrade
with engine.begin() as connection:
    exec(inspect.cleandoc(upgrade), {'op': Operations(MigrationContext.configure(connection)), 'sa': sqlalchemy})

statements = []
event.listen(engine, 'before_cursor_execute', lambda *arguments: statements.append(arguments[2]))
with Session(engine) as session:
    order = Order(item='tea')
    session.add(order)
    session.flush()
    assert type(order.id) is int and order.id > 2**53
    statements.clear()
    orders = [Order(item=f'item {n}') for n in range(1000)]
    session.add_all(orders)
    session.flush()
    assert len(statements) == (1 if sqlalchemy.__version__ < '2' else 1000), len(statements)
    ids = [order.id for order in orders]
    assert ids == sorted(set(ids)), 'ids in the order of the objects'
    session.add(Line(order_id=ids[0]))
    session.commit()
    statements.clear()
    ids = session.execute(text('SELECT uidgen.uid_next_array(:count)'), {'count': 1000}).scalar()
    session.add_all(Order(id=id, item='numbered') for id in ids)
    session.flush()
    assert len(statements) == 2, len(statements)
    assert session.query(Order).filter_by(item='numbered').count() == len(set(ids)) == 1000
    rows = session.execute(insert(Order).returning(Order.id).values([{'item': 'a'}, {'item': 'b'}])).all()
    assert len(set(rows)) == 2
    session.commit()

# Autogenerate sees no difference. The extension's own tables are in schemas that it is not to look into.
assert differences(engine)[1] == []
assert differences(engine, include_schemas=True, include_name=include_name)[1] == []
offered = [change[1].fullname for change in differences(engine, include_schemas=True)[1] if change[0] == 'remove_table']
assert 'uidgen.worker_node' in offered, offered

# With the extension's schema in the search_path the server shows the default as uid_next().
with_path = create_engine('postgresql+psycopg2://', connect_args={'options': '-c search_path=public,uidgen'})
changes = differences(with_path)[1]
assert [change[0][0] for change in changes if isinstance(change, list)] == ['modify_default'], changes
# SQLAlchemy 2 also finds the extension's tables there.
offered = [change[1].name for change in changes if change[0] == 'remove_table']
assert ('worker_node' in offered) == (sqlalchemy.__version__ >= '2'), offered
