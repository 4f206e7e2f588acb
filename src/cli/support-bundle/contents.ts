/** A file of a bundle. */
export interface BundleFile {
  readonly path: string;
  readonly what: string;
  readonly text: string;
  /** There is more of it than was read. */
  readonly cut: boolean;
}

/** What is not in a bundle, and why. */
export interface Omission {
  readonly what: string;
  readonly why: string;
}

/** Of all files of a bundle together, in bytes, before they are packed. */
const MOST_BYTES = 64 << 20;

/** The files of a bundle as they come, and what did not come. */
export class Contents {
  readonly files: BundleFile[] = [];
  readonly omissions: Omission[] = [];
  #bytes = 0;

  add(path: string, what: string, text: string, { cut = false } = {}): void {
    const bytes = Buffer.byteLength(text);
    if (this.#bytes + bytes > MOST_BYTES) {
      this.omit(what, `the bundle would be larger than ${MOST_BYTES >> 20} MiB`);
      return;
    }
    this.#bytes += bytes;
    this.files.push({ path, what, text, cut });
  }

  addJson(path: string, what: string, content: unknown, more: { cut?: boolean } = {}): void {
    this.add(path, what, `${JSON.stringify(content, undefined, 2)}\n`, more);
  }

  omit(what: string, why: string): void {
    this.omissions.push({ what, why });
  }
}

/** What index.json says: what is in the bundle, and what is not. */
export interface BundleIndex {
  /** RFC 3339. */
  created: string;
  program: string;
  host: string | null;
  files: { path: string; what: string; bytes: number; cut: boolean }[];
  notRead: readonly Omission[];
}

export function indexOf(contents: Contents, about: Pick<BundleIndex, 'created' | 'program' | 'host'>): BundleIndex {
  return {
    ...about,
    files: contents.files.map(({ path, what, text, cut }) => ({ path, what, bytes: Buffer.byteLength(text), cut })),
    notRead: contents.omissions,
  };
}
