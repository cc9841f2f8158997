// SPDX-License-Identifier: MIT
// Asks DuckDB, without a database and without a network:
//   node duckdb_query.mjs NPM_FOLDER STATEMENTS QUESTION > JSON
// Prints an array of rows, each an array. Integers of more than 32 bits are strings.
import path from 'node:path';
import { createRequire } from 'node:module';

const [npm, statements, question] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(path.join(npm, 'from.js'))('@duckdb/node-api');
const instance = await DuckDBInstance.create(':memory:', {
  autoinstall_known_extensions: 'false',
});
const connection = await instance.connect();
await connection.run(statements);
const reader = await connection.runAndReadAll(question);
process.stdout.write(JSON.stringify(reader.getRowsJson()));
