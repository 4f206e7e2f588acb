import { type JsonRecord, listOf, recordOf } from '../../kube/json-fields.ts';
import type { Remarks } from './remarks.ts';

/**
 * Reads an object field by field, so that none is passed over in silence: {@link Fields.end} says of those that nobody asked for that
 * they are left out. Absent and null are the same.
 */
export class Fields {
  readonly path: string;
  readonly #record: JsonRecord;
  readonly #remarks: Remarks;
  readonly #read = new Set<string>();

  constructor(value: unknown, path: string, remarks: Remarks) {
    this.path = path;
    const record = recordOf(value);
    if (record === undefined && value !== undefined) remarks.lost(path, 'is no object and is left out');
    this.#record = record ?? {};
    this.#remarks = remarks;
  }

  /** Names of all fields that are given. */
  get names(): string[] {
    return Object.keys(given(this.#record)).filter((name) => this.#record[name] !== null);
  }

  take(name: string): unknown {
    this.#read.add(name);
    return (Object.hasOwn(this.#record, name) ? this.#record[name] : undefined) ?? undefined;
  }

  /** An object within; undefined where there is none. */
  within(name: string): Fields | undefined {
    const value = this.take(name);
    return value === undefined ? undefined : new Fields(value, this.of(name), this.#remarks);
  }

  /** The objects of a list. */
  each(name: string): Fields[] {
    const value = this.take(name);
    if (value !== undefined && !Array.isArray(value)) this.#remarks.lost(this.of(name), 'is no list and is left out');
    return listOf(value).map((item, index) => new Fields(item, `${this.of(name)}[${index}]`, this.#remarks));
  }

  /** These fields as they are, as far as they are given. */
  same(...names: string[]): JsonRecord {
    return given(Object.fromEntries(names.map((name) => [name, this.take(name)])));
  }

  of(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }

  /** Of all fields that were not read. `nothing`: fields that say nothing that is needed here. */
  end(...nothing: string[]): void {
    for (const name of this.names) {
      if (this.#read.has(name) || nothing.includes(name)) continue;
      this.#remarks.lost(this.of(name), 'is not known here and is left out');
    }
  }
}

/** Without what is undefined. */
export function given(record: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
