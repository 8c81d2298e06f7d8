// Canonical JSON (RFC 8785) for content revisions, with the same refusals as the Rust crate `headwater-wire`.
//
// No dependencies; runs in Node 20 and in browsers. `JSON.parse` is not used: it keeps half of a surrogate pair, drops repeated keys
// and rounds integers without a word, and each of these must fail instead. The revision of a 2.x message is SHA-256 over the UTF-8
// bytes of `canonicalize(content)`, of a 1.x message over those of `canonicalizeParts(parts)`.

/** Deepest nesting of arrays and objects. */
export const DEPTH_MAX = 256;

/** Most digits of an integer whose value is looked at. */
const INTEGER_DIGITS_MAX = 38;

/** Why a text has no canonical form; `kind` is one of the names in `canonical.json`. Holds no content. */
export class CanonicalError extends Error {
  constructor(kind, offset) {
    super(`${kind} at character ${offset}`);
    this.name = "CanonicalError";
    this.kind = kind;
    this.offset = offset;
  }
}

/** The canonical form of a JSON document, given as a string or as UTF-8 bytes. */
export function canonicalize(input) {
  return new Scanner(textOf(input)).document();
}

/** The canonical form of the array of a 1.x message's parts: pairs of id and stored text, in id order, each with its id added. */
export function canonicalizeParts(parts) {
  const forms = parts.map(([id, input]) => new Scanner(textOf(input)).part(id));
  return `[${forms.join(",")}]`;
}

function textOf(input) {
  if (typeof input === "string") return input;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(input);
  } catch {
    throw new CanonicalError("invalid-utf8", 0);
  }
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const SHORT = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", "/": "/" };

class Scanner {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  document() {
    const form = this.value(0);
    return this.finish(form);
  }

  part(id) {
    this.space();
    if (this.at < this.text.length && this.text[this.at] !== "{") this.fail("not-an-object");
    if (this.at >= this.text.length) this.fail("syntax");
    // The part stands inside the array of parts.
    return this.finish(this.object(2, id));
  }

  finish(form) {
    this.space();
    if (this.at < this.text.length) this.fail("syntax");
    return form;
  }

  fail(kind, offset = this.at) {
    throw new CanonicalError(kind, offset);
  }

  space() {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at += 1;
    }
  }

  /** Moves over white space and the one character that must come next. */
  expect(character) {
    this.space();
    if (this.text[this.at] !== character) this.fail("syntax");
    this.at += 1;
  }

  value(depth) {
    this.space();
    switch (this.text[this.at]) {
      case "{":
        return this.object(depth + 1, undefined);
      case "[":
        return this.array(depth + 1);
      case '"':
        return JSON.stringify(this.string());
      case "t":
        return this.literal("true");
      case "f":
        return this.literal("false");
      case "n":
        return this.literal("null");
      default:
        return this.number();
    }
  }

  literal(word) {
    if (!this.text.startsWith(word, this.at)) this.fail("syntax");
    this.at += word.length;
    return word;
  }

  enter(depth) {
    if (depth > DEPTH_MAX) this.fail("too-deep");
    this.at += 1;
    this.space();
  }

  array(depth) {
    this.enter(depth);
    const forms = [];
    if (this.text[this.at] === "]") {
      this.at += 1;
      return "[]";
    }
    for (;;) {
      forms.push(this.value(depth));
      this.space();
      if (this.text[this.at] === "]") break;
      this.expect(",");
    }
    this.at += 1;
    return `[${forms.join(",")}]`;
  }

  object(depth, id) {
    this.enter(depth);
    const members = new Map();
    if (this.text[this.at] === "}") this.at += 1;
    else this.members(depth, members, id);
    if (id !== undefined) members.set("id", JSON.stringify(id));
    // Strings compare by UTF-16 code units.
    const keys = [...members.keys()].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${keys.map((key) => `${JSON.stringify(key)}:${members.get(key)}`).join(",")}}`;
  }

  members(depth, members, id) {
    for (;;) {
      this.space();
      if (this.text[this.at] !== '"') this.fail("syntax");
      const start = this.at;
      const key = this.string();
      if (members.has(key)) this.fail("repeated-key", start);
      this.expect(":");
      this.space();
      const place = this.at;
      const form = this.value(depth);
      if (key === "id" && id !== undefined && form !== JSON.stringify(id)) this.fail("other-id", place);
      members.set(key, form);
      this.space();
      if (this.text[this.at] === "}") break;
      this.expect(",");
    }
    this.at += 1;
  }

  number() {
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (found === null) this.fail("syntax");
    const [text, fraction, exponent] = found;
    const value = Number(text);
    const digits = text.startsWith("-") ? text.slice(1) : text;
    if (!Number.isFinite(value)) this.fail("lossy-number");
    if (value === 0 && /[1-9]/.test(digits.split(/[eE]/)[0])) this.fail("lossy-number");
    if (fraction === undefined && exponent === undefined && digits.length > 15) {
      const isExact = digits.length <= INTEGER_DIGITS_MAX && BigInt(text) === BigInt(value);
      // What ECMAScript prints is accepted, or the canonical form would not be.
      if (!isExact && String(value) !== text) this.fail("lossy-number");
    }
    this.at += text.length;
    return String(value);
  }

  /** The decoded string whose opening quote comes next. */
  string() {
    this.at += 1;
    let decoded = "";
    let copied = this.at;
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (Number.isNaN(code) || code < 0x20) this.fail("syntax");
      if (code === 0x22) break;
      if (code === 0x5c) {
        decoded += this.text.slice(copied, this.at) + this.escape();
        copied = this.at;
      } else if (code >= 0xd800 && code < 0xe000) {
        this.pair(code, this.text.charCodeAt(this.at + 1));
        this.at += 2;
      } else {
        this.at += 1;
      }
    }
    decoded += this.text.slice(copied, this.at);
    this.at += 1;
    return decoded;
  }

  escape() {
    const start = this.at;
    const letter = this.text[start + 1];
    if (letter !== "u") {
      if (letter === undefined || !Object.hasOwn(SHORT, letter)) this.fail("syntax");
      this.at += 2;
      return SHORT[letter];
    }
    const unit = this.unit(start);
    this.at = start + 6;
    if (unit < 0xd800 || unit >= 0xe000) return String.fromCharCode(unit);
    const low = this.text.startsWith("\\u", this.at) ? this.unit(this.at) : Number.NaN;
    this.pair(unit, low, start);
    this.at += 6;
    return String.fromCharCode(unit, low);
  }

  /** The code unit of the `\u` escape at `start`. */
  unit(start) {
    const digits = this.text.slice(start + 2, start + 6);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.fail("syntax", start);
    return Number.parseInt(digits, 16);
  }

  pair(high, low, offset = this.at) {
    if (!(high < 0xdc00 && low >= 0xdc00 && low < 0xe000)) this.fail("lone-surrogate", offset);
  }
}
