/** Declares what every page needs of a signed-in person. */
export interface SignedInUser {
  /** The id of the session. */
  readonly id: string;
  readonly user: { readonly id: string; readonly login: string; readonly name: string; readonly isAdmin: boolean };
  /** Goes into the hidden field `csrf_token` of every form. */
  readonly csrfToken: string;
}
