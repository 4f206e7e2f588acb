/** `1 pod`, `2 pods`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `12 s`, `5 min`, `3 h`, `2 d` before `now`; '' for no time. Both RFC 3339. */
export function ago(time: string | null, now: string): string {
  const ms = Date.parse(now) - Date.parse(time ?? '');
  if (Number.isNaN(ms)) return '';
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 100) return `${seconds} s ago`;
  if (seconds < 6_000) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** `14:03:20`, as clocks here show it. */
export function clock(time: string): string {
  return new Date(time).toLocaleTimeString([], { hour12: false });
}

/** `1.5`, `12`, `340`: three figures at most. */
export function figure(amount: number): string {
  return amount >= 100 || Number.isInteger(amount) ? String(Math.round(amount)) : String(Math.round(amount * 10) / 10);
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Of several amounts that are compared, all in the unit of the largest. */
export function bytes(amounts: readonly number[]): { texts: string[]; unit: string } {
  let [value, unit] = [Math.max(...amounts), 0];
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1];
  return { texts: amounts.map((one) => figure(one / 1024 ** unit)), unit: UNITS[unit] ?? '' };
}

/** What people read in place of `local`. */
export function placeName(cluster: string): string {
  return cluster === 'local' ? 'here' : cluster;
}
