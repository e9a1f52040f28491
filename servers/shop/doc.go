// Package shop is a server for a small shop: products, customers, carts, orders, stock.
// It is an example of a server with state, which also asks its caller's user and model.
//
// From the command line, on a file or on a database in memory that lives as long as the
// server:
//
//	patchbay call shop/products category=tents
//	patchbay serve shop --db shop.db --http 127.0.0.1:7420
//	patchbay call add-to-cart product=prd-1001 quantity:=2 -s http://127.0.0.1:7420/mcp
//
// From Go:
//
//	http.Handle("/mcp", shop.New(shop.Options{DB: "shop.db"}))
//
// # Features
//
//	products         the catalogue, of one category or all
//	product          one product
//	categories       the categories, with descriptions and numbers of products
//	create-product   adds one; the caller's model writes the description (sampling),
//	                 with the given keywords
//	get-customers    the customers
//	add-to-cart      fills a cart, and creates one if none is given
//	get-cart         a cart, or the newest cart of a customer, in short
//	get-cart-items   its lines
//	place-order      buys a cart, or products at once
//	get-orders       orders, of one customer or all, newest first
//	get-order        one order, with its lines
//	book-trip        a guided trip; asks for what is missing, for another date if
//	                 the date is taken, and whether the customer wants to be a
//	                 member (elicitation)
//	process-files    adds the waiting delivery notes to the stock, with progress
//	                 and log messages, which carry the given message
//
//	catalog://products             the catalogue; subscribers are notified of changes
//	catalog://products/{category}  a part of it, with completion
//	describe_product               a prompt for the description of a product
//
// A product is named by its id (product) or by its name (product_name). create-product also takes
// product_name for name and quantity for stock. Both names of one argument at once are an error.
//
// A new database begins with a made-up catalogue, customers, orders and delivery notes. A
// file of an earlier version is upgraded when it is opened.
//
// # Guarantees
//
//   - An order is one transaction: the stock goes down, the order is there and the cart
//     is empty, or nothing has changed. Stock is never oversold, even if several
//     programs use the file at the same time.
//   - A trip is booked once, and a product created once, even if a client repeats an
//     answer.
//   - Prices are whole cents; totals are exact.
//   - A change is on the disk before its answer is sent, if a file was given.
//   - Tools list at most 100 products, customers or orders, and name the next page.
//   - A shop holds at most 1,000 products in 100 categories, 100 products to a cart or
//     order, and 10,000 carts; the oldest cart makes room.
//
// The shop is for experiments: every caller can see and do everything.
package shop
