import type { JsonObject } from '../../src/kube/json-equal.ts';

/** Stored objects are frozen, and many answers and watches send the same one: as text, by object. */
const texts = new WeakMap<object, string>();

/** An object as JSON. What is not frozen may be another one the next time. */
export function textOf(object: JsonObject): string {
  const known = texts.get(object);
  if (known !== undefined) return known;
  const text = JSON.stringify(object);
  if (Object.isFrozen(object)) texts.set(object, text);
  return text;
}

/** The answer to a request as JSON: of a list, each item as its object's text. */
export function answerText(answer: JsonObject): string {
  const { items, ...rest } = answer;
  if (!Array.isArray(items) || Object.isFrozen(answer)) return textOf(answer);
  const head = JSON.stringify(rest);
  return `${head.slice(0, -1)},"items":[${items.map((item) => textOf(item as JsonObject)).join(',')}]}`;
}
