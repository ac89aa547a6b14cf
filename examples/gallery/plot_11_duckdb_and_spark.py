"""
Data that stay in DuckDB or Spark
=================================

Two million rows are in a database, and you do not want to load them to average a few
columns by store. An encoder needs the moments of each level only: counts, means,
squares. Those are a GROUP BY, and encoding is a JOIN, so both run where the data are.
"""

# %%
# A table of two million sales in 500 stores, made inside DuckDB. In practice it would
# be a file of Parquet or a table that is already there.

import time

import altair as alt
import duckdb

from sufrep import MeansEncoder

database = duckdb.connect()
database.execute("SELECT setseed(0.5)")
database.execute(
    """
    CREATE TABLE sales AS
    SELECT 'store ' || (i % 500) AS store,
           2 + i % 500 % 3 + hash(i % 500) % 100 / 150 + random() AS items,
           15 * (1 + i % 500 % 3) + hash(-i % 500) % 100 / 10 + 20 * random() AS basket,
           random() AS share_fresh
    FROM range(2000000) AS r(i)
    """
)
sales = database.table("sales")

# %%
# The relation goes in, and a relation comes out. Nothing but one row for each store
# travels to Python.

started = time.perf_counter()
encoder = MeansEncoder("store", unseen="prior").fit(sales)
print(f"fit: {time.perf_counter() - started:.1f} s")
encoded = encoder.transform(sales)
print(type(encoded).__name__, encoded.columns)

# %%
# Each dot is a store. Three kinds of stores appear that no column names. The chart was
# drawn from 500 rows.

vectors = encoder.table(library="pandas")
alt.Chart(vectors).mark_circle(size=40, opacity=0.6, color="#2f78d6").encode(
    x=alt.X(
        "store_mean_items", title="average number of items", scale=alt.Scale(zero=False)
    ),
    y=alt.Y(
        "store_mean_basket",
        title="average basket in dollars",
        scale=alt.Scale(zero=False),
    ),
).properties(
    width=420,
    height=260,
    title="500 stores, from two million rows that stayed in DuckDB",
)

# %%
# The encoded rows can be written from the database, too, also when they are larger than
# memory::
#
#     encoded.write_parquet("encoded.parquet")
#
# **Spark** takes the same code. It needs a cluster, so the following block is *shown,
# and was not run* when this page was built (the tests of sufrep run code like it with a
# local Spark)::
#
#     from pyspark.sql import SparkSession
#
#     spark = SparkSession.builder.getOrCreate()
#     sales = spark.read.parquet("s3://bucket/sales/")
#     encoder = MeansEncoder("store", unseen="prior").fit(sales)
#     encoder.transform(sales).write.parquet("s3://bucket/encoded/")
