/** Node's own, taken before anything is replaced: the simulation itself must not run on simulated time. */
export const realSetImmediate = globalThis.setImmediate;
export const realNow = performance.now.bind(performance);
