/** What has our marks in a member, by name: `Kind namespace/name`, or `Kind name` where there is no namespace. */
export interface Remains {
  /** Copies of pods of this MemberCluster. */
  readonly pods: readonly string[];
  /** Its copies of ConfigMaps, Secrets and Services, EndpointSlices and disruption budgets, that nobody else needs. */
  readonly copies: readonly string[];
  /** Data, which stay, and what other MemberClusters have there. */
  readonly others: readonly string[];
  /** Where nobody could look for copies, in words. */
  readonly unseen: readonly string[];
}

/** Of one Event, in characters. */
const EVENT_LENGTH = 850;
/** Further ones say nothing that the status does not. */
const MOST_EVENTS = 8;

export const nameIn = (kind: string, { namespace, name }: { namespace?: string | undefined; name: string }): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;

/** The names in as few texts as Events can take; the last says what is left out. */
export function inEvents(names: readonly string[]): string[] {
  const texts: string[] = [];
  let text = '';
  let told = 0;
  for (const name of names) {
    if (text !== '' && text.length + name.length + 2 > EVENT_LENGTH) {
      texts.push(text);
      text = '';
      if (texts.length === MOST_EVENTS) break;
    }
    text += text === '' ? name : `, ${name}`;
    told += 1;
  }
  if (text !== '') texts.push(text);
  const last = texts.pop();
  if (last === undefined) return [];
  return [...texts, told < names.length ? `${last} and ${names.length - told} more` : last];
}
