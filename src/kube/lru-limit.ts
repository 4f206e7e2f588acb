/**
 * Options of an LRUCache that keeps so many entries; without a number as many as one of pods or workloads needs. Its arrays grow with what is in
 * it, while `max` makes them for all entries at once: a cache of thousands then costs hundreds of KB before its first entry, for every virtual
 * node anew.
 */
export function atMost(entries = 10_000): { maxSize: number; sizeCalculation: () => 1 } {
  return { maxSize: entries, sizeCalculation: one };
}

function one(): 1 {
  return 1;
}
