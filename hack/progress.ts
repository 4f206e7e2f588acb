/** Says one line of progress to a person. */
export type Say = (line: string) => void;

const started = Date.now();

/** Progress on standard error with the seconds since the program started; standard output stays free for results. */
export const sayOnStderr: Say = (line) => {
  const seconds = ((Date.now() - started) / 1000).toFixed(1).padStart(6);
  process.stderr.write(`${seconds}s  ${line}\n`);
};

export const sayNothing: Say = () => undefined;
