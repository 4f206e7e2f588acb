/**
 * The lines of Prometheus' text format (0.0.4) as kubelets write them, one at a time:
 * `name{label="value",...} 12.5 1624525412463`, the timestamp (ms) being optional.
 */

export interface Label {
  readonly name: string;
  /** As written, escapes and all. */
  readonly value: string;
}

export interface Sample {
  readonly family: string;
  readonly labels: readonly Label[];
  /** The number's own text. */
  readonly value: string;
  /** Milliseconds, as text; undefined when the line has none. */
  readonly timestamp: string | undefined;
}

/** Up to the year 5138. */
const TIMESTAMP = /^\d{1,14}$/;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SHARP = 0x23;

/** The metric's name; undefined for comments, empty lines and lines without a space or label. */
export function familyOf(line: string): string | undefined {
  if (line.length === 0 || line.charCodeAt(0) === SHARP) return undefined;
  const end = line.search(/[{ ]/);
  return end <= 0 ? undefined : line.slice(0, end);
}

/**
 * `namespace/name` of the pod that a line is about; undefined when it is about none, or is malformed. Cheap: it looks at
 * the label names and skips all other values. Label values cannot pretend to be labels.
 */
export function podKeyOf(line: string): string | undefined {
  let namespace: string | undefined;
  let pod: string | undefined;
  const whole = scanLabels(line, (name, start, end) => {
    if (name === 'pod') pod = line.slice(start, end);
    else if (name === 'namespace') namespace = line.slice(start, end);
  });
  if (whole === undefined || namespace === undefined || pod === undefined || pod === '') return undefined;
  return `${namespace}/${pod}`;
}

/** A line in its parts; undefined when it is no sample. */
export function parseSample(line: string): Sample | undefined {
  const family = familyOf(line);
  if (family === undefined) return undefined;
  const labels: Label[] = [];
  let rest = family.length;
  if (line[family.length] === '{') {
    const end = scanLabels(line, (name, from, to) => labels.push({ name, value: line.slice(from, to) }));
    if (end === undefined) return undefined;
    rest = end;
  }
  const [value, timestamp, ...more] = line.slice(rest).trim().split(/\s+/);
  if (value === undefined || value === '' || more.length > 0) return undefined;
  if (timestamp !== undefined && !TIMESTAMP.test(timestamp)) return undefined;
  return { family, labels, value, timestamp };
}

export function formatSample({ family, labels, value, timestamp }: Sample): string {
  const inner = labels.map((label) => `${label.name}="${label.value}"`).join(',');
  const tail = timestamp === undefined ? value : `${value} ${timestamp}`;
  return inner === '' ? `${family} ${tail}` : `${family}{${inner}} ${tail}`;
}

/**
 * Walks the labels of a line, telling each name and where its value starts and ends. Returns the index behind the closing
 * brace; undefined for a line without labels or with malformed ones.
 */
function scanLabels(line: string, tell: (name: string, start: number, end: number) => void): number | undefined {
  let at = line.indexOf('{') + 1;
  if (at === 0) return undefined;
  for (;;) {
    while (line[at] === ' ' || line[at] === ',') at += 1;
    if (line[at] === '}') return at + 1;
    const equals = line.indexOf('=', at);
    if (equals < 0 || line.charCodeAt(equals + 1) !== QUOTE) return undefined;
    const name = line.slice(at, equals).trim();
    const start = equals + 2;
    let end = start;
    while (end < line.length && line.charCodeAt(end) !== QUOTE) end += line.charCodeAt(end) === BACKSLASH ? 2 : 1;
    if (end >= line.length) return undefined;
    tell(name, start, end);
    at = end + 1;
  }
}
