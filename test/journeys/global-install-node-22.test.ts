/** The package installed globally on Node 22. Each Node has a file of its own, since an installation takes a minute and more. */
import { openInstallations, testGlobalInstall } from '../support/deploy/global-install.ts';

testGlobalInstall(openInstallations(), { node: '22.23.3', npm: '12.2.0' });
