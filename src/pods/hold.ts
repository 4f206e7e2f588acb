/** Why nothing more can be done for a pod at the moment, in a reason for machines and a message for people. */
export interface Hold {
  reason: string;
  message: string;
}
