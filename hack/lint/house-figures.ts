import { arrowsBetweenRooms, type Sources } from './import-rules.ts';

/** How simple the house is, to be seen from commit to commit. */
export interface HouseFigures {
  /** Folders and files directly below src that some import ties to others. */
  rooms: number;
  /** A room stands above all that it knows: so many floors there are. */
  floors: number;
  /** Pairs of rooms of which the first knows the second, be it by a type alone. */
  arrows: number;
  /** Rooms that know each other, be it over others; the import rules allow none. */
  mutual: string[];
}

export function houseFigures(sources: Sources): HouseFigures {
  const knows = new Map<string, Set<string>>();
  for (const { from, to } of arrowsBetweenRooms(sources)) {
    knows.set(from, (knows.get(from) ?? new Set()).add(to));
    knows.set(to, knows.get(to) ?? new Set());
  }
  const floors = new Map<string, number>();
  const left = new Set(knows.keys());
  for (let floor = 1; left.size > 0; floor += 1) {
    const ready = [...left].filter((room) => [...(knows.get(room) ?? [])].every((known) => floors.has(known)));
    if (ready.length === 0) break;
    for (const room of ready) left.delete(room);
    for (const room of ready) floors.set(room, floor);
  }
  const arrows = [...knows.values()].reduce((sum, { size }) => sum + size, 0);
  return { rooms: knows.size, floors: Math.max(0, ...floors.values()), arrows, mutual: [...left].toSorted() };
}

/** What of the house is more than the page allows that says `at most 24 rooms on 8 floors, with 84 arrows`, in words. */
export function beyondLimits({ rooms, floors, arrows }: HouseFigures, page: string): string[] {
  const limits = /at most (\d+) rooms on (\d+) floors, with (\d+) arrows/.exec(page)?.slice(1).map(Number) ?? [];
  if (limits.length === 0) return ['the page says no limits'];
  return [rooms, floors, arrows].flatMap((is, at) => {
    const most = limits[at] ?? 0;
    const what = ['rooms', 'floors', 'arrows between rooms'][at] ?? '';
    return is <= most ? [] : [`src has ${is} ${what}, and docs/design.md (section 2) allows ${most}`];
  });
}
