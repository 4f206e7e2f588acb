/**
 * Kubernetes' `resource.Quantity`, exact. A quantity is a whole number of 10^-9 units (the API server rounds anything
 * finer up, away from zero, when it parses), so one bigint holds every value without loss.
 */
export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';

export interface Quantity {
  /** The value times 10^9. */
  readonly nanos: bigint;
  /** How it was written, and so how it is written again. */
  readonly format: QuantityFormat;
}

export class QuantityError extends Error {
  override readonly name = 'QuantityError';
}

const NANOS = 1_000_000_000n;
/** BinarySI amounts are capped here, as in Go: quotas beyond int64 cannot be written with binary suffixes. */
const MAX_BINARY = (2n ** 63n - 1n) * NANOS;
/** Longer numbers are refused: no real amount needs them, and bigint parsing of megabytes would stall the process. */
const MAX_LENGTH = 128;
const MAX_EXPONENT = 64;

const PATTERN = /^([+-]?)(\d*)(?:\.(\d*))?(?:([numkMGTPE]?)|([KMGTPE]i)|[eE]([+-]?\d{1,9}))$/;
const DECIMAL_SUFFIXES = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
]);
const DECIMAL_BY_EXPONENT = new Map([...DECIMAL_SUFFIXES].map(([suffix, exponent]) => [exponent, suffix]));
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/**
 * Reads a quantity as the API server does: sign, decimals, the suffixes n u m k M G T P E, Ki..Ei, and decimal exponents
 * (e3, E-3). Numbers are taken as their decimal text, since manifests may say `cpu: 2`.
 *
 * @throws QuantityError when the text is no quantity.
 */
export function parseQuantity(text: string | number | bigint): Quantity {
  const source = typeof text === 'string' ? text : String(text);
  const match = source.length <= MAX_LENGTH ? PATTERN.exec(source) : null;
  const [, sign, whole = '', fraction = '', decimal, binary, exponentText] = match ?? [];
  if (match === null || whole + fraction === '') {
    throw new QuantityError(`"${source.slice(0, 40)}" is not a quantity such as 500m, 2, 1.5Gi or 1e3`);
  }
  const digits = BigInt(whole + fraction);
  let nanos: bigint;
  let format: QuantityFormat;
  if (binary !== undefined) {
    const power = BigInt(BINARY_SUFFIXES.indexOf(binary)) * 10n;
    nanos = shift(digits * 2n ** power, 9 - fraction.length);
    if (nanos > MAX_BINARY) nanos = MAX_BINARY;
    // Below one byte the binary form could not be written back without rounding.
    format = nanos > 0n && nanos < NANOS ? 'DecimalSI' : 'BinarySI';
  } else {
    const exponent = exponentText === undefined ? (DECIMAL_SUFFIXES.get(decimal ?? '') ?? 0) : Number(exponentText);
    if (digits !== 0n && exponent > MAX_EXPONENT) {
      throw new QuantityError(`"${source.slice(0, 40)}" is too large for a quantity`);
    }
    nanos = digits === 0n ? 0n : shift(digits, Math.max(exponent, -MAX_LENGTH * 2) + 9 - fraction.length);
    format = exponentText === undefined ? 'DecimalSI' : 'DecimalExponent';
  }
  return { nanos: sign === '-' ? -nanos : nanos, format };
}

/** As people write them. */
const USUAL = /^\d{1,9}(?:m|k|[KMGT]i|[MGT])?$/;

/** Whether {@link parseQuantity} can read it; a tenth of what reading costs. */
export function isQuantity(text: string): boolean {
  if (USUAL.test(text)) return true;
  const match = text.length <= MAX_LENGTH ? PATTERN.exec(text) : null;
  if (match === null) return false;
  const digits = `${match[2]}${match[3] ?? ''}`;
  return digits !== '' && (Number(match[6] ?? 0) <= MAX_EXPONENT || !/[1-9]/.test(digits));
}

/** Multiplies a non-negative number by 10^exponent; what does not divide evenly is rounded up. */
function shift(digits: bigint, exponent: number): bigint {
  if (exponent >= 0) return digits * 10n ** BigInt(exponent);
  const by = 10n ** BigInt(-exponent);
  return (digits + by - 1n) / by;
}

export function compare(a: Quantity, b: Quantity): -1 | 0 | 1 {
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0;
}

/**
 * The canonical text, equal to Go's `Quantity.String()` of the same amount and format: no fraction, the largest suffix
 * that leaves a whole number. Binary amounts under 1024, or that are no whole number, are written in decimal. Where Go
 * loses the suffix (1000E becomes 1), this keeps the value.
 */
export function formatQuantity({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0';
  if (format === 'BinarySI' && nanos % NANOS === 0n) {
    const units = nanos / NANOS;
    if (units <= -1024n || units >= 1024n) return formatBinary(units);
  }
  const exponential = format === 'DecimalExponent';
  const largest = exponential ? Infinity : 18;
  let mantissa = nanos;
  let exponent = -9;
  while (mantissa % 1000n === 0n && exponent < largest) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (!exponential) return `${mantissa}${DECIMAL_BY_EXPONENT.get(exponent) ?? ''}`;
  return exponent === 0 ? String(mantissa) : `${mantissa}e${exponent}`;
}

function formatBinary(units: bigint): string {
  let mantissa = units;
  let power = 0;
  while (mantissa % 1024n === 0n && power < BINARY_SUFFIXES.length - 1) {
    mantissa /= 1024n;
    power += 1;
  }
  return `${mantissa}${BINARY_SUFFIXES[power] ?? ''}`;
}
