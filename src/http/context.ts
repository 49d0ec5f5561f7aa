/** Declares the values that every HTTP handler finds in its context. */
import type { Language } from '../language/language.ts';
import type { Log } from '../telemetry/log.ts';
import type { BodyEnv } from './body/limit-body.ts';

export interface HttpEnv {
  Variables: BodyEnv['Variables'] & {
    /** 32 lower-case hex digits: the caller's `traceparent` when it sent one, else new. Also in the log line. */
    traceId: string;
    log: Log;
    /** The address of the client behind the trusted proxies. */
    clientAddress?: string;
    /** The endpoint of the request is a probe. */
    isProbe?: boolean;
    /** The signed-in person chose this language for the pages. */
    preferredLanguage?: Language;
    /** The time zone of the requested page, or of the page that sent the form. */
    shownTimeZone?: string;
  };
}
