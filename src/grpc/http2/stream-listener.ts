/** Declares the events of a stream that its call receives: data, the end of the read, a reset, too little memory. */

/** Why the server ends a call that it could answer. */
export type CutReason = 'the server stops' | 'another client takes the place of the connection';

export interface StreamListener {
  /** Whether the call can do nothing with what it keeps before more comes. */
  readonly isUnfinished: boolean;
  /** Whether the server can do nothing for the call before its client goes on, or the call only watches. */
  readonly waitsForClient: boolean;
  /** The memory that the call itself takes while it waits. */
  readonly ownBytes: number;
  /** Bytes of the request, and whether they are the last. The bytes stay as they are. */
  onData(bytes: Buffer, isLast: boolean): void;
  /** The read that the call came with is used up, and the call is not over. */
  onReadEnd(): void;
  /** The client left, or the connection is gone. */
  onReset(): void;
  /** The server ends the connection and can wait no longer. */
  onCut(reason: CutReason): void;
  /** The call keeps more memory than there is. */
  onShed(): void;
}
