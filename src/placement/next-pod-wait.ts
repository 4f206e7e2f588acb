/** So long the pod that comes instead of another one is waited for, and its place is kept, once that one is gone or should be, in ms. */
export const NEXT_POD_WAIT_MS = 300_000;
