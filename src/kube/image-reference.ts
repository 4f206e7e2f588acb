/** `[registry/]repository[:tag][@digest]`, as the distribution project defines it. Parts that are missing are empty. */
export interface ImageReference {
  /** Host with an optional port, such as `registry.example:5000`. */
  readonly registry: string;
  /** One or more path components, such as `library/nginx`. */
  readonly repository: string;
  readonly tag: string;
  /** Algorithm, colon, hex digits. */
  readonly digest: string;
}

const HOST =
  /^([a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(:[0-9]+)?$/;
const REPOSITORY = /^[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*([/][a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGESTS = [/^sha256:[a-f0-9]{64}$/, /^sha384:[a-f0-9]{96}$/, /^sha512:[a-f0-9]{128}$/];
/** Of registry, slash and repository together. */
const MAX_NAME = 255;

export function isTag(text: string): boolean {
  return TAG.test(text);
}

export function isDigest(text: string): boolean {
  return DIGESTS.some((pattern) => pattern.test(text));
}

/**
 * Reads an image as a kubelet does, without adding a default registry, `library/` or a default tag. The first component
 * is a registry if it has a dot, a colon or a capital letter, or is `localhost`. Undefined: no image reference.
 */
export function parseImage(text: string): ImageReference | undefined {
  const at = text.indexOf('@');
  const [rest, digest] = at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
  // A colon before the last slash belongs to the registry's port.
  const colon = rest.indexOf(':', rest.lastIndexOf('/') + 1);
  const [name, tag] = colon < 0 ? [rest, ''] : [rest.slice(0, colon), rest.slice(colon + 1)];
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  const registry = /[.:A-Z]/.test(first) || first === 'localhost' ? first : '';
  const repository = registry === '' ? name : name.slice(slash + 1);
  const valid =
    name.length <= MAX_NAME &&
    (registry === '' || HOST.test(registry)) &&
    REPOSITORY.test(repository) &&
    (colon < 0 || isTag(tag)) &&
    (at < 0 || isDigest(digest));
  return valid ? { registry, repository, tag, digest } : undefined;
}

/** The image as it is written; parts that do not fit together make a text that {@link parseImage} refuses. */
export function formatImage({ registry, repository, tag, digest }: ImageReference): string {
  const name = registry === '' ? repository : `${registry}/${repository}`;
  return name + (tag === '' ? '' : `:${tag}`) + (digest === '' ? '' : `@${digest}`);
}
