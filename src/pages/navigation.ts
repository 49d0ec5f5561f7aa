/** Where the console leads: in the navigation of every page, and as tiles on the start page. */
export interface NavigationEntry {
  readonly path: string;
  readonly label: string;
  /** One sentence for the start page. */
  readonly about: string;
}

export interface NavigationSection {
  readonly title: string;
  readonly entries: readonly NavigationEntry[];
}
