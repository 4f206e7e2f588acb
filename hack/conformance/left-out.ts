import type { LeftOut } from './comparison.ts';

/** The conformance specs of sig-node. */
export const FOCUS = String.raw`\[sig-node\].*\[Conformance\]`;

/** Nothing is left out because a virtual node fails it: only what this machine's member cannot do itself. */
export const LEFT_OUT: readonly LeftOut[] = [
  {
    pattern: String.raw`ImageVolume should succeed with pod and pull policy of Always`,
    reason: 'images as volumes need containerd 2.1, and the one that Debian packages, which runs here, is 1.6',
  },
];
