import { isAscii } from 'node:buffer';

/** As API servers write it. The quote in front begins the name of a field: within a text there would be a backslash before it. */
const MANAGED_FIELDS = Buffer.from('"managedFields":[');
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, COMMA, QUOTE, BACKSLASH] = [0x5b, 0x5d, 0x7b, 0x2c, 0x22, 0x5c];

/** Text of a body of JSON; without `managedFields` where nobody reads them, see KubeRequest.managedFields. */
export function jsonText(body: Buffer, managedFields: boolean): string {
  return managedFields ? decodeText(body) : withoutManagedFields(body);
}

/** Text of a body. Most are plain ASCII, which needs no decoding. */
export function decodeText(body: Buffer): string {
  return body.toString(isAscii(body) ? 'latin1' : 'utf8');
}

/**
 * Text of a JSON body without `managedFields` (server-side apply): of a pod they are half of the bytes, and two thirds of the
 * objects that parsing makes. For kinds of which nobody reads them, and which have no other field of that name. What is
 * written with spaces, or has no end, stays as it is.
 */
function withoutManagedFields(json: Buffer): string {
  let text = '';
  let from = 0;
  for (let found = json.indexOf(MANAGED_FIELDS); found >= 0;) {
    const after = endOfList(json, found + MANAGED_FIELDS.length);
    if (after === undefined) break;
    const before = json[found - 1];
    // One of the commas around it goes, too.
    if (before === COMMA) {
      text += decodeText(json.subarray(from, found - 1));
      from = after;
    } else if (before === OPEN_OBJECT) {
      text += decodeText(json.subarray(from, found));
      from = json[after] === COMMA ? after + 1 : after;
    }
    found = json.indexOf(MANAGED_FIELDS, after);
  }
  return text + decodeText(json.subarray(from));
}

/** The place behind the bracket that closes the list in which `at` is; undefined: none does. */
function endOfList(json: Buffer, at: number): number | undefined {
  let open = 1;
  for (let i = at; i < json.length; i++) {
    const byte = json[i];
    if (byte === QUOTE) {
      for (i++; i < json.length && json[i] !== QUOTE; i++) if (json[i] === BACKSLASH) i++;
    } else if (byte === OPEN_LIST) open++;
    else if (byte === CLOSE_LIST && --open === 0) return i + 1;
  }
  return undefined;
}
