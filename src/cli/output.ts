import { stringify } from 'yaml';
import { CliError } from './cli-error.ts';
import { EXIT } from './exit-code.ts';
import { table, type Column } from './table.ts';

export const FORMATS = ['table', 'wide', 'json', 'yaml', 'name'] as const;
export type Format = (typeof FORMATS)[number];

/** Of all documents that programs may read; their fields are in docs/reference/cli.md. */
const API_VERSION = 'cli.spillway.dev/v1alpha1';

/** A list of things of one kind, and how people see one. */
export interface Listing<T extends object> {
  /** Of one item, such as `Cluster`. */
  kind: string;
  items: readonly T[];
  columns: readonly Column<T>[];
  /** `resource/name` */
  name: (item: T) => string;
  /** Said in place of an empty table. */
  empty?: string;
}

/** The list as the person wants to have it. */
export function listed<T extends object>(listing: Listing<T>, format: Format, headers = true): string {
  const { kind, items, columns, name } = listing;
  switch (format) {
    case 'json':
    case 'yaml':
      return documented({ kind: `${kind}List`, items }, format);
    case 'name':
      return items.map((item) => `${name(item)}\n`).join('');
    case 'table':
    case 'wide':
      return table(items, columns, { wide: format === 'wide', headers });
  }
}

/** One document for programs. */
export function documented(content: { kind: string; [field: string]: unknown }, format: 'json' | 'yaml'): string {
  const document = { apiVersion: API_VERSION, ...content };
  return format === 'json'
    ? `${JSON.stringify(document, undefined, 2)}\n`
    : stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** @throws CliError when it is none of those that the verb has. */
export function formatOf(text: string, allowed: readonly Format[]): Format {
  const found = allowed.find((one) => one === text);
  if (found !== undefined) return found;
  throw new CliError(`there is no output format ${JSON.stringify(text)} here`, {
    exitCode: EXIT.usage,
    fix: `use one of ${allowed.join(', ')}`,
  });
}
