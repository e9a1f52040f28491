// Package shop is a server for a small shop with everything that makes one: products,
// customers, carts, orders, stock. It shows how a server with state is made, and asks
// its caller's user and model where a shop would.
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
//	categories       what there are of them, with how many products
//	create-product   adds one; the caller's model writes the description (sampling)
//	get-customers    who buys here
//	add-to-cart      fills a cart, and makes one when none is given
//	get-cart         a cart in short
//	get-cart-items   what is in it
//	place-order      buys a cart, or products at once
//	get-orders       orders, of one customer or all, newest first
//	get-order        one order, with its lines
//	book-trip        a guided trip; asks for another date when it is taken, and
//	                 whether the customer wants to be a member (elicitation)
//	process-files    books the delivery notes that wait into the stock, with progress
//	                 and log messages
//
//	catalog://products             the catalogue; subscribers are told of changes
//	catalog://products/{category}  a part of it, with completion
//	describe_product               a prompt to have a product described
//
// A new database begins with a catalogue, customers, orders and delivery notes that
// are made up.
//
// # Guarantees
//
//   - An order is one transaction: the stock goes down, the order is there and the cart
//     is empty, or nothing has happened. Nothing is sold that is not there, however many
//     programs use the file at the same time.
//   - A trip is booked once, and a product made once, however often a client sends an
//     answer again.
//   - Prices are whole cents; totals are exact.
//   - What was answered is on the disk, if a file was given.
//   - Tools list at most 100 products, customers or orders, and say how to read on.
//   - A shop holds at most 1,000 products in 100 categories, 100 products to a cart or
//     order, and 10,000 carts; the oldest cart makes room.
//
// It is a shop to try things with: every caller sees and may do everything.
package shop
