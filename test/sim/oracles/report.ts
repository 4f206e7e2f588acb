/** What oracles are told, and what they say it with. */
export type Report = (oracle: string, what: string) => void;
