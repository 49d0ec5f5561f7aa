/** What refusals of the rules say in Chinese. A test finds phrases whose English is no longer in the program. */
import { createExplainer, type Phrase } from '../language/explain.ts';

export const PHRASES_ZH: readonly Phrase[] = [
  // Forms and pages
  [
    'This form is too old or was not made by this service: go back, reload and try again',
    '此表单已过期或不是由本服务生成：请返回、刷新页面后重试。',
  ],
  ['This form was sent from another site', '此表单由其他网站发送。'],
  [
    'This page is too old or belongs to another session: go back to the application and try again',
    '此页面已过期或属于其他会话：请返回应用后重试。',
  ],
  [
    'Cannot read the form: it must be sent as application/x-www-form-urlencoded',
    '无法读取表单：必须以 application/x-www-form-urlencoded 格式发送。',
  ],
  // Accounts
  [
    'Cannot take the password: it must be {} to {} characters long, got {}',
    '密码长度必须为 {1} 到 {2} 个字符，当前为 {3} 个。',
  ],
  ['Cannot take the password: it must have at least 4 different characters', '密码至少要有 4 个不同的字符。'],
  ['Cannot take the password: it must be more than the login', '密码不能只是用户名。'],
  [
    'Cannot take the login "{}": it must be 1 to 64 letters, digits, ".", "_" or "-", and begin and end with a letter or digit',
    '用户名“{1}”无效：必须由 1 到 64 个字母、数字、“.”、“_”或“-”组成，并以字母或数字开头和结尾。',
  ],
  ['Cannot create the user: the login "{}" is taken', '用户名“{1}”已被占用。'],
  ['Cannot set up the service: it already has a user', '服务已有用户，不能再次初始化。'],
  ['Cannot save the profile: the name must be 1 to {} characters', '姓名必须为 1 到 {1} 个字符。'],
  ['Cannot save the profile: "{}" is not an email address', '“{1}”不是邮箱地址。'],
  [
    'Cannot save the email address: "{}" is the verified address of another account',
    '“{1}”是另一个账号已验证的邮箱地址。',
  ],
  ['Cannot change the password: another one was set meanwhile', '无法修改密码：期间已设置了另一个密码。'],
  ['Cannot check a password right now: too many are being checked', '当前正在验证的密码过多，请稍后重试。'],
  ['Too many attempts: try again in {} seconds', '尝试次数过多：请在 {1} 秒后重试。'],
  ['Too many attempts, try again later', '尝试次数过多，请稍后重试。'],
  ['The passkey was not accepted', '通行密钥未被接受。'],
  ['Cannot add a passkey: the sign-in is too long ago', '登录时间过久，无法添加通行密钥。'],
  ['Cannot make recovery codes: the authenticator app is off', '身份验证器应用未开启，无法生成恢复代码。'],
  ['{} did not let you in', '{1} 拒绝了登录。'],
  ['{} does not answer at the moment', '{1} 暂时没有响应。'],
  ['The provider sent no subject', '身份提供方没有返回用户标识。'],
  ['Cannot create the account: too many have this login', '无法创建账号：使用此用户名的账号过多。'],
  ['There is no person with the login "{}"', '没有用户名为“{1}”的用户。'],
  ['Cannot disable the user: it is yourself', '不能停用您自己的账号。'],
  [
    'Cannot take the rights: this is the last administrator who can sign in',
    '无法取消权限：这是最后一个可以登录的管理员。',
  ],
  ['Cannot create the link: the account is disabled', '无法生成链接：账号已停用。'],
  ['Cannot send the link: this service sends no mail', '无法发送链接：本服务不发送邮件。'],
  ['Cannot send the link: the account has no verified email address', '无法发送链接：该账号没有已验证的邮箱地址。'],
  // Applications and tokens
  ['Cannot save the application: name must be 1 to 100 characters', '名称必须为 1 到 100 个字符。'],
  ['Cannot save the application: description must be at most 1000 characters', '描述最多 1000 个字符。'],
  ['Cannot save the application: homepage must be an http or https URL', '主页必须是 http 或 https 地址。'],
  ['Cannot save the application: redirect_uri must be at most {} URIs', '回调地址最多 {1} 个。'],
  ['Cannot save the application: redirect_uri must name at least one URI', '至少需要一个回调地址。'],
  ['Cannot save the application: grant_types must name at least one grant', '至少需要一种授权模式。'],
  [
    'Cannot register the redirect URI: it must use https, or http on a loopback address, got "{}"',
    '回调地址“{1}”无效：必须使用 https，或在本机回环地址上使用 http。',
  ],
  ['Cannot register the redirect URI: it must be an absolute URI, got "{}"', '回调地址“{1}”无效：必须是完整的 URI。'],
  ['Cannot register the redirect URI: it must have no fragment, got "{}"', '回调地址“{1}”无效：不能包含片段（#）。'],
  [
    'Cannot register the redirect URI: it must have no user information, got "{}"',
    '回调地址“{1}”无效：不能包含用户信息。',
  ],
  [
    'Cannot register the redirect URI: it must have no "." or ".." segments, got "{}"',
    '回调地址“{1}”无效：不能包含“.”或“..”路径段。',
  ],
  ['Cannot register the redirect URI: it must have at most {} characters, got "{}"', '回调地址最多 {1} 个字符。'],
  [
    'Cannot register the redirect URI: it must be plain ASCII without spaces, "\\" and "*", got "{}"',
    '回调地址“{1}”无效：只能使用 ASCII 字符，不能有空格、“\\”和“*”。',
  ],
  [
    'Cannot register the redirect URI: it must use https: private schemes are for applications without a secret, got "{}"',
    '回调地址“{1}”无效：必须使用 https，私有协议仅用于没有密钥的应用。',
  ],
  [
    'Cannot register the redirect URI: it must use a scheme that is a reversed domain name, like com.example.app, got "{}"',
    '回调地址“{1}”无效：私有协议必须是反向域名，例如 com.example.app。',
  ],
  [
    'Cannot register the redirect URI: it must have the host as browsers read it, "{}", after its scheme, got "{}"',
    '回调地址“{2}”无效：主机部分必须写成浏览器识别的形式“{1}”。',
  ],
  ['Cannot add a secret: two are live already, remove one of them first', '已有两个有效密钥，请先删除其中一个。'],
  ['Cannot add a secret: a public application has none, it uses PKCE', '公开应用没有密钥，使用 PKCE。'],
  ['Cannot remove the secret: it is the last one, add another first', '这是最后一个密钥，请先添加另一个。'],
  ['Cannot remove the secret: this slot has no secret', '该密钥不存在。'],
  ['Cannot create the token: name must be 1 to 100 characters', '名称必须为 1 到 100 个字符。'],
  ['Cannot create the token: scopes must name at least one scope', '至少选择一个权限范围。'],
  [
    'Cannot create the token: repositories must be OWNER/NAME each, got "{}"',
    '每个仓库都必须写成 OWNER/NAME，“{1}”无效。',
  ],
  ['Cannot create the token: repositories must name 1 to {} repositories', '仓库数量必须为 1 到 {1} 个。'],
  [
    'Cannot create the token: scopes must be of {} when it is limited to repositories, got "{}"',
    '限定仓库的令牌只能使用权限范围 {1}，“{2}”不可用。',
  ],
  ['Cannot create the token: the session or token that makes it has ended', '无法创建令牌：当前会话已结束。'],
  // Consent and devices
  ['This code is unknown or has expired. Check it on the device', '代码无效或已过期。请检查设备上的代码。'],
  ['The device asks for rights that you do not have', '设备请求了您没有的权限。'],
  ['The application that asks is not known any more', '发起请求的应用已不存在。'],
  [
    'The application did not say where to return to: redirect_uri is missing',
    '应用没有提供回调地址：缺少 redirect_uri。',
  ],
  ['The address to return to is not registered for "{}"', '回调地址未在应用“{1}”中注册。'],
  ['No application is known under this client_id', '没有使用此 client_id 的应用。'],
  // Webhooks
  ['Cannot create the repository: "{}" exists already', '仓库“{1}”已存在。'],
  ['Cannot create the repository: path must be given, "{}" cannot be one', '“{1}”不能作为仓库名称。'],
  ['Cannot find the owner "{}"', '没有所有者“{1}”。'],
  ['Cannot use this url: it must have at most {} characters', '地址最多 {1} 个字符。'],
  [
    'Cannot use this url: it must not contain blanks, control characters or backslashes',
    '地址不能包含空格、控制字符或反斜杠。',
  ],
  [
    'Cannot use this url: it must be a complete address, as https://example.com/hook',
    '必须填写完整的地址，例如 https://example.com/hook。',
  ],
  ['Cannot use this url: it must be http or https, got "{}"', '地址必须使用 http 或 https，“{1}”不可用。'],
  ['Cannot use this url: it must not be localhost', '地址不能是 localhost。'],
  [
    'Cannot use this url: it must not name a host of a private network, got "{}"',
    '地址不能指向私有网络中的主机“{1}”。',
  ],
  ['Cannot use this url: it must name its host with a domain, got "{}"', '地址的主机必须带有域名，“{1}”不可用。'],
  [
    'Cannot use this url: it must not be a private or reserved address, got "{}"',
    '地址不能是私有或保留地址，“{1}”不可用。',
  ],
  ['Cannot use this url: it does not resolve to a public address', '该地址没有解析到公网地址。'],
  ['Cannot create the webhook: url must not be blank', '请填写地址。'],
  ['Cannot update the webhook: url must not be blank', '请填写地址。'],
  ['Cannot create the webhook: a repository has at most {} of them', '每个仓库最多 {1} 个 Webhook。'],
  ['Cannot test the webhook: at most {} tests an hour are allowed', '每小时最多测试 {1} 次。'],
  ['Webhook not found: {} has no {}', 'Webhook 不存在：{1} 没有 {2}。'],
  ['Delivery not found: the webhook has no {}', '投递不存在：此 Webhook 没有 {1}。'],
  ['The receiver answered 410 Gone', '接收端返回 410 Gone'],
  ['Nothing but failure since {}, in {} attempts', '自 {1} 起连续失败，共 {2} 次尝试'],
  // Models
  ['Cannot find the model "{}"', '没有模型“{1}”。'],
  ['Cannot find version {} of the model "{}"', '模型“{2}”没有版本 {1}。'],
  [
    'Cannot roll back "{}": no other version was served before this one',
    '无法回滚“{1}”：在此版本之前没有其他版本上线过。',
  ],
  ['Cannot roll back "{}": there is no such model', '无法回滚“{1}”：没有这个模型。'],
  ['better on the newest rows', '在最新数据上更好'],
  ['trained from files', '由文件训练'],
];

export const explainFrameFailure = createExplainer(PHRASES_ZH);
