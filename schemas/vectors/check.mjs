// Checks canonical.mjs against canonical.json: `node check.mjs`. Exits 1 and names each case that differs.
//
// `node check.mjs --hash` instead reads one base64 document per line from standard input and prints one line for each: its SHA-256, or
// `refused`.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { CanonicalError, canonicalize, canonicalizeParts } from "./canonical.mjs";

const sha256 = (text) => createHash("sha256").update(text, "utf8").digest("hex");

/** What canonical.mjs makes of a case, in the members of the case. */
function outcome(test) {
  try {
    const input = test.hex === undefined ? test.text : Buffer.from(test.hex, "hex");
    const canonical = test.parts === undefined ? canonicalize(input) : canonicalizeParts(test.parts);
    return { canonical, sha256: sha256(canonical) };
  } catch (error) {
    if (!(error instanceof CanonicalError)) throw error;
    return { error: error.kind };
  }
}

function checkVectors() {
  const { cases } = JSON.parse(readFileSync(new URL("canonical.json", import.meta.url), "utf8"));
  const names = ["canonical", "sha256", "error"];
  let failures = 0;
  for (const test of cases) {
    const found = outcome(test);
    const odd = names.filter((name) => found[name] !== test[name]);
    if (odd.length > 0) {
      failures += 1;
      console.error(`${test.name}: ${odd.map((name) => `${name} is ${found[name]}, not ${test[name]}`).join("; ")}`);
    }
  }
  console.log(`${cases.length} cases, ${failures} differ`);
  return cases.length > 0 && failures === 0;
}

function hashLines() {
  const lines = readFileSync(0, "utf8").split("\n").filter((line) => line !== "");
  for (const line of lines) {
    const found = outcome({ hex: Buffer.from(line, "base64").toString("hex") });
    console.log(found.sha256 ?? "refused");
  }
  return true;
}

const passed = process.argv.includes("--hash") ? hashLines() : checkVectors();
process.exitCode = passed ? 0 : 1;
