// Package apps gives the tools of a server a user interface: MCP Apps, by the
// extension io.modelcontextprotocol/ui (document of 2026-01-26).
//
// A view is an HTML document that the server offers as a resource with a ui:// URI. A
// tool names a view; a host that can render it shows the tool's results there, in a
// sandbox, and lets the view call tools of the same server. A host that cannot uses
// the tool like any other.
//
//	ui := apps.Enable(srv)
//	ui.AddView(apps.View{URI: "ui://weather/forecast", Name: "forecast", HTML: page})
//	apps.AddTool(ui, mcp.Tool{Name: "forecast"}, apps.Link{ResourceURI: "ui://weather/forecast"}, forecast)
//	apps.AddTool(ui, mcp.Tool{Name: "refresh"}, apps.Link{Visibility: []apps.Audience{apps.App}}, refresh)
//
// # Guarantees
//
//   - A tool names only existing views: a view is added before the tools that name it.
//   - A caller that did not declare that it renders views sees the tools without their views, and
//     neither sees nor can call the tools only for views.
//   - A tool with a view answers with content that can be read without it.
//   - The needs of a view are declared and checked when it is added: a source that could widen
//     the content security policy of a host, such as one with a space, is refused.
//
// This package has the server's part, and the declarations and checks of a client. It renders
// nothing. Views and links of other servers pass through a Session and a gateway unchanged.
package apps
