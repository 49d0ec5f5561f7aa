/** Declares the events that a call receives from its stream: data, the end of the read, a reset, too little memory. */

/** Why the server ends a call that it could answer. */
export type CutReason = 'the server stops' | 'another client takes the place of the connection';

export interface StreamListener {
  /** Whether the call needs more bytes before it can use those that it keeps. */
  readonly isUnfinished: boolean;
  /** Whether the call waits for its client, or is a watch. */
  readonly waitsForClient: boolean;
  /** The memory that the call itself takes while it waits. */
  readonly ownBytes: number;
  /** Receives bytes of the request, and whether they are the last. The bytes are not overwritten. */
  onData(bytes: Buffer, isLast: boolean): void;
  /** Called when the read that brought the call is used up and the call is not over. */
  onReadEnd(): void;
  /** The client left, or the connection is gone. */
  onReset(): void;
  /** The server ends the connection and can wait no longer. */
  onCut(reason: CutReason): void;
  /** Called when there is no room for the memory of the call. */
  onShed(): void;
}
