import { z } from 'zod';

/**
 * Pieces that the kinds' schemas are built from. Metadata given with `.meta()` travels into the CRD: keys that start with
 * `x-kubernetes-` as they are, `unit` only into the reference page.
 */

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?[/])?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;
/** A quantity that is not negative. */
const QUANTITY = /^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$/;

export const dnsLabel = (max = 63): z.ZodString => z.string().min(1).max(max).regex(DNS_LABEL);
export const dnsSubdomain = (): z.ZodString => z.string().min(1).max(253).regex(DNS_SUBDOMAIN);
/** A label key or a taint key: an optional DNS prefix of at most 253 characters, and a name of at most 63. */
export const labelKey = (): z.ZodString => z.string().min(1).max(317).regex(LABEL_KEY);
export const labelValue = (): z.ZodString => z.string().max(63).regex(LABEL_VALUE);
/**
 * A map of labels with at most 64 entries. More CEL rules may speak about `self`. A refused key is named by the map only:
 * a CRD cannot say more.
 */
export const labelMap = (...rules: CelRule[]) =>
  z.record(z.string(), labelValue()).meta({
    maxProperties: 64,
    ...cel(
      { rule: `self.all(k, k.matches('${celString(LABEL_KEY.source)}'))`, message: 'keys must be label keys' },
      ...rules,
    ),
  });

/** Like resource.Quantity in Go: a string, or a whole number. */
const quantity = z
  .union([z.string().max(64).regex(QUANTITY), z.int().min(0)])
  .meta({ 'x-kubernetes-int-or-string': true, pattern: QUANTITY.source, maxLength: 64 });
/** Resource name to quantity. */
export const quantityMap = () =>
  z.record(z.string(), quantity).meta({
    maxProperties: 64,
    ...cel(
      { rule: `self.all(k, k.matches('${celString(LABEL_KEY.source)}'))`, message: 'keys must be resource names' },
      { rule: 'self.all(k, type(self[k]) != int || self[k] >= 0)', message: 'quantities must not be negative' },
    ),
  });

/** One entry of `x-kubernetes-validations`, see the CRD documentation of Kubernetes. */
export interface CelRule {
  rule: string;
  message: string;
  reason?: 'FieldValueRequired' | 'FieldValueForbidden';
  fieldPath?: string;
}
/** Metadata that adds CEL rules to a schema. */
export const cel = (...rules: CelRule[]): { 'x-kubernetes-validations': CelRule[] } => ({
  'x-kubernetes-validations': rules,
});
/** Text as the inside of a CEL string literal. */
const celString = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll("'", "\\'");

/** Metadata of a list whose items are told apart by `keys`; the server refuses duplicates. */
export const listMap = (...keys: string[]) => ({
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': keys,
});
