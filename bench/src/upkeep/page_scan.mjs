// Searches 2.x rows the way a plugin does: pages of 32 rows, JSON parsed row by row, every string of the content compared in lower case.
// Prints the number of messages found. node page_scan.mjs DATABASE TEXT
import { DatabaseSync } from "node:sqlite";

const [path, text] = process.argv.slice(2);
const database = new DatabaseSync(path, { readOnly: true });
const page = database.prepare("SELECT rowid, type, data FROM session_message WHERE rowid > ? ORDER BY rowid LIMIT 32");
const wanted = text.toLowerCase();

function holds(value) {
  if (typeof value === "string") return value.toLowerCase().includes(wanted);
  if (Array.isArray(value)) return value.some(holds);
  if (value !== null && typeof value === "object") return Object.values(value).some(holds);
  return false;
}

let after = -1;
let found = 0;
for (;;) {
  const rows = page.all(after);
  if (rows.length === 0) break;
  for (const row of rows) {
    after = row.rowid;
    const data = JSON.parse(row.data);
    if (holds(row.type === "assistant" ? data.content : data)) found += 1;
  }
}
console.log(found);
